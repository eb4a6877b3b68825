//! The order of entries.

use std::fs;

use super::*;

fn line(ended: &str, what: &str) -> String {
    format!("{{\"what\":\"{what}\",\"stageTimestamp\":\"{ended}\"}}\n")
}

#[test]
fn of_several_files_that_line_comes_next_whose_request_ended_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name)
    };
    let first = file(
        "a",
        line("2026-11-01T12:00:01.000000Z", "1") + "\n" + "torn\n" + &line("2026-11-01T12:00:04.000000Z", "4"),
    );
    let second = file("b", line("2026-11-01T12:00:02.000000Z", "2") + &line("2026-11-01T12:00:03.000000Z", "3"));
    let paths = [second, first];
    let size = size(&paths);
    let mut log = Log::open(&paths, vec![("c:1".to_owned(), Val::object([]))]).unwrap();
    let mut found = Vec::new();
    while let Some(entry) = log.next_entry().unwrap() {
        let place = entry.place.rsplit('/').next().unwrap().to_owned();
        found.push(match entry.text {
            Text::Line(line) => format!("{place} {}", String::from_utf8(line).unwrap().chars().nth(9).unwrap_or('-')),
            Text::Value(_) => place,
        });
    }
    assert_eq!(
        found,
        ["a:1 1", "a:3 -", "b:1 2", "b:2 3", "a:4 4", "c:1"],
        "each line of a file after the one before it"
    );
    assert_eq!(size.map(|bytes| bytes - 1), Some(log.bytes()), "all but the empty line");
}
