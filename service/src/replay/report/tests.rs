//! Parts and their sum.

use super::*;

fn part(number: u64, of: u64) -> Replayed {
    Replayed { complete: true, ..Replayed::begun(Inputs::default(), Shard { number, of }) }
}

#[test]
fn a_shard_is_written_from_0() {
    assert_eq!("1/4".parse(), Ok(Shard { number: 1, of: 4 }));
    for wrong in ["4/4", "1", "a/2", "0/0", "-1/2"] {
        assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
    }
    let shards = [0, 1, 2].map(|number| Shard { number, of: 3 });
    assert!((0..10).all(|entry| shards.iter().filter(|shard| shard.has(entry)).count() == 1), "each entry is of one");
}

#[test]
fn parts_that_are_not_all_of_one_replay_are_no_whole() {
    let named = |parts: Vec<Replayed>| {
        let named = parts.into_iter().enumerate().map(|(at, part)| (format!("p{at}"), part)).collect();
        Replayed::of_parts(named).map(|_| ())
    };
    assert_eq!(named(vec![part(1, 2), part(0, 2)]), Ok(()));
    assert!(named(vec![part(0, 2)]).unwrap_err().contains("shard 1/2 is missing"));
    assert!(named(vec![part(0, 2), part(0, 2)]).unwrap_err().contains("both shard 0/2"));
    assert!(named(vec![part(0, 2), part(1, 3)]).unwrap_err().contains("one of 3 shards"));
    let unfinished = Replayed { complete: false, ..part(1, 2) };
    assert!(named(vec![part(0, 2), unfinished]).unwrap_err().contains("run shard 1/2 again with `--part p1`"));
    let mut other = part(1, 2);
    other.inputs.policy = "another".to_owned();
    assert!(named(vec![part(0, 2), other]).unwrap_err().contains("another log, state, policy"));
}

#[test]
fn the_first_of_a_gap_is_told_whichever_part_has_it() {
    let missed = |number, entry| {
        let mut part = part(number, 2);
        part.miss(Gap::NoBody, entry, format!("log:{entry}"), "what".to_owned());
        ("part".to_owned(), part)
    };
    let whole = Replayed::of_parts(vec![missed(1, 7), missed(0, 4)]).unwrap();
    assert_eq!((whole.not_judged[&Gap::NoBody].count, whole.not_judged[&Gap::NoBody].entry), (2, 4));
}
