//! Mutations of a text that mind no syntax: flipped bytes, cut and doubled parts, tokens out of place, bombs.

use suture_service::bench::prng::Prng;

/// The longest bomb, in bytes: longer ones only test the patience of the test.
const BOMB_BYTES: usize = 200_000;

/// Tokens that mean something to a parser.
const TOKENS: [&str; 36] = [
    "&a ",
    "*a",
    "<<: *a\n",
    "!!binary ",
    "!!float ",
    "!x ",
    "---\n",
    "...\n",
    "- ",
    "? ",
    ": ",
    "[",
    "]",
    "{",
    "}",
    "|\n",
    ">-\n",
    "\"",
    "'",
    "#",
    "%YAML 9.9\n",
    "\t",
    "\r\n",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "99999999999999999999999999",
    "1e999999999",
    "-0",
    ".nan",
    "0x7fffffffffffffff",
    "9223372036854775807",
    "-9223372036854775808",
    "null",
    "\\ud800",
    "1_0__0",
];

/// The text, mutated once or a few times; or a bomb in its place.
pub fn mutated(seed: &str, prng: &mut Prng) -> String {
    if prng.one_in(12) {
        return bomb(prng);
    }
    let mut bytes = seed.as_bytes().to_vec();
    for _ in 0..=prng.below(4) {
        mutate(&mut bytes, prng);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn mutate(bytes: &mut Vec<u8>, prng: &mut Prng) {
    let at = prng.below(bytes.len() + 1);
    let length = prng.below(200).min(bytes.len() - at);
    match prng.below(8) {
        0 => bytes.truncate(at),
        1 => {
            for _ in 0..=prng.below(16) {
                let at = prng.below(bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << prng.below(8);
                }
            }
        }
        2 => {
            let part = bytes[at..at + length].to_vec();
            let to = prng.below(bytes.len() + 1);
            bytes.splice(to..to, part);
        }
        3 => drop(bytes.drain(at..at + length)),
        4 => bytes.extend(bytes.clone()),
        5 => {
            let digits = digits(bytes, at);
            let number = TOKENS[26 + prng.below(10)].bytes();
            bytes.splice(digits, number);
        }
        _ => {
            let token = prng.pick(&TOKENS).unwrap().repeat(if prng.one_in(10) { 500 } else { 1 });
            bytes.splice(at..at, token.bytes());
        }
    }
}

/// The first number after a position.
fn digits(bytes: &[u8], from: usize) -> std::ops::Range<usize> {
    let start = bytes.iter().skip(from).position(u8::is_ascii_digit).map_or(bytes.len(), |skipped| from + skipped);
    let length = bytes.iter().skip(start).take_while(|byte| byte.is_ascii_digit()).count();
    start..start + length
}

/// A small text that may grow when it is read, or is nested deeper than a stack.
pub fn bomb(prng: &mut Prng) -> String {
    let depth = [100, 1_000, 10_000, 50_000][prng.below(4)];
    match prng.below(9) {
        0 => "[".repeat(depth),
        1 => "{a: ".repeat(depth) + &"}".repeat(depth),
        2 => (0..depth.min(600)).map(|level| format!("{}a:\n", " ".repeat(level))).collect(),
        3 => "- ".repeat(depth),
        4 => laughs(9, 10),
        5 => laughs(3, 400),
        6 => format!("a: {}", "x".repeat(BOMB_BYTES)),
        7 => (0..BOMB_BYTES / 10).map(|key| format!("k{key}: 1\n")).collect(),
        _ => {
            let merges: String =
                (0..200).map(|at| format!("m{}: &m{} {{<<: [*m{at}, *m{at}], k{at}: 1}}\n", at + 1, at + 1)).collect();
            format!("m0: &m0 {{a: 1}}\n{merges}")
        }
    }
}

/// Lists of aliases of lists of aliases.
fn laughs(levels: usize, width: usize) -> String {
    let mut text = String::from("a0: &a0 [lol]\n");
    for level in 1..=levels {
        let aliases = vec![format!("*a{}", level - 1); width].join(", ");
        text += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    text
}
