//! The words of Rust source without its comments, what only tests compile, and where functions begin and end. It knows
//! tokens and brackets, no grammar; macros are read as if they were code.

use crate::tree::{expect_none, is_word, sources};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A name, a keyword or a number.
    Word,
    /// A string, a character or a lifetime, with its quotes.
    Text,
    /// A bracket, a separator or an operator: one character, or one of [`LONG_MARKS`].
    Mark,
}

/// A piece of source that the compiler reads as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub sort: Sort,
    pub text: &'a str,
    /// The line on which it starts, from one.
    pub line: usize,
}

impl<'a> Token<'a> {
    /// Whether it is this name, keyword or mark.
    pub fn is(&self, text: &str) -> bool {
        self.sort != Sort::Text && self.text == text
    }

    /// The name or keyword that it is.
    pub fn word(&self) -> Option<&'a str> {
        (self.sort == Sort::Word).then_some(self.text)
    }

    /// The content of a plain string.
    pub fn literal(&self) -> Option<&'a str> {
        let content = self.text.strip_prefix('"')?.strip_suffix('"');
        content.filter(|_| self.sort == Sort::Text)
    }

    /// The lines on which it stands.
    pub fn lines(&self) -> impl Iterator<Item = usize> + use<> {
        self.line..=self.line + self.text.matches('\n').count()
    }
}

/// A function: its name, the line of its `fn`, the line of its closing brace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    pub name: &'a str,
    pub first: usize,
    pub last: usize,
}

impl Function<'_> {
    /// How many lines a reader sees.
    pub fn lines(&self) -> usize {
        self.last + 1 - self.first
    }
}

/// Marks that would mean something else if they were read a character at a time.
const LONG_MARKS: [&str; 4] = ["::", "..", "=>", "->"];

#[test]
fn strings_comments_and_characters_hide_their_brackets() {
    let source = "a /* { /* } */ { */ b // {\n'{' '\\'' 'x c \"\\\"{\" r#\"\"{\"# b'{' r#type 1..2";
    let found: Vec<&str> = tokens(source).iter().map(|token| token.text).collect();
    let wanted = ["a", "b", "'{'", "'\\''", "'x", "c", "\"\\\"{\"", "r#\"\"{\"#", "b'{'", "r#type", "1", "..", "2"];
    assert_eq!(found, wanted);
    assert_eq!(tokens("a\n\"b\nc\" d").iter().map(|token| token.line).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn in_every_source_file_what_opens_closes() {
    let mut problems = Vec::new();
    for (path, text) in sources() {
        let mut open = Vec::new();
        for token in tokens(&text) {
            if opens(&token) {
                open.push(token);
            } else if closes(&token)
                && !open.pop().is_some_and(|bracket: Token| BRACKETS.contains(&(bracket.text, token.text)))
            {
                problems.push(format!("{}:{}: `{}` closes nothing", path.display(), token.line, token.text));
            }
        }
        problems.extend(open.first().map(|token| format!("{}:{}: never closes", path.display(), token.line)));
    }
    expect_none(&problems);
}

#[test]
fn what_only_tests_compile_is_left_out() {
    let source = "a; #[cfg(test)] mod tests; #[cfg(test)] #[path] impl<A, B> X { b } #[cfg(test)] use c::{d}; \
                  S { #[cfg(test)] e: f(g, h), i } #[cfg(test)] fn j() -> [u8; 2] { k } l";
    let found: Vec<&str> = without_tests(&tokens(source)).iter().filter_map(Token::word).collect();
    assert_eq!(found, ["a", "S", "i", "l"]);
    assert!(without_tests(&tokens("#![cfg(test)] a")).is_empty());
}

#[test]
fn a_function_ends_where_its_brace_closes() {
    let source =
        "pub fn a<T>(f: fn(u8))\nwhere T: X,\n{\n  fn b() { '}' }\n}\ntrait T { fn c();\nfn d(_: [u8; 2]) {}\n}";
    let found = functions(&tokens(source)).into_iter().map(|function| (function.name, function.first, function.last));
    assert_eq!(found.collect::<Vec<_>>(), [("a", 1, 5), ("b", 4, 4), ("d", 7, 7)]);
}

/// The tokens of a source.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let (mut found, mut rest, mut line) = (Vec::new(), source, 1);
    while let Some(first) = rest.chars().next() {
        let (sort, length) = first_token(rest, first);
        let (text, after) = rest.split_at(length);
        found.extend(sort.map(|sort| Token { sort, text, line }));
        line += text.matches('\n').count();
        rest = after;
    }
    found
}

/// What a source starts with, and how long it is; nothing is said of blanks and comments.
fn first_token(rest: &str, first: char) -> (Option<Sort>, usize) {
    if first.is_whitespace() {
        (None, first.len_utf8())
    } else if let Some(length) = comment(rest) {
        (None, length)
    } else if let Some(length) = raw_string(rest).or_else(|| quoted(rest)) {
        (Some(Sort::Text), length)
    } else if is_word(first) {
        (Some(Sort::Word), word(rest))
    } else {
        let long = LONG_MARKS.iter().find(|mark| rest.starts_with(**mark));
        (Some(Sort::Mark), long.map_or(first.len_utf8(), |mark| mark.len()))
    }
}

/// The length of the comment that a source starts with.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    rest.strip_prefix("/*")?;
    let mut depth = 0_usize;
    for (start, _) in rest.char_indices() {
        let here = rest.get(start..).unwrap_or_default();
        depth += usize::from(here.starts_with("/*"));
        if here.starts_with("*/") {
            depth -= 1;
            if depth == 0 {
                return Some(start + 2);
            }
        }
    }
    Some(rest.len())
}

/// The length of the raw string that a source starts with.
fn raw_string(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let content = inside.trim_start_matches('#').strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(inside.len() - content.len() - 1));
    let opening = rest.len() - content.len();
    Some(content.find(&end).map_or(rest.len(), |at| opening + at + end.len()))
}

/// The length of the string, the character or the lifetime that a source starts with.
fn quoted(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let content = inside.strip_prefix(['"', '\''])?;
    let quote = if inside.starts_with('"') { '"' } else { '\'' };
    let opening = rest.len() - content.len();
    let is_lifetime = quote == '\'' && !content.starts_with('\\') && content.chars().nth(1) != Some('\'');
    if is_lifetime {
        return Some(opening + word(content));
    }
    let mut escaped = false;
    for (at, c) in content.char_indices() {
        if !escaped && c == quote {
            return Some(opening + at + 1);
        }
        escaped = !escaped && c == '\\';
    }
    Some(rest.len())
}

/// The length of the word that a source starts with.
fn word(rest: &str) -> usize {
    let prefix = if rest.starts_with("r#") { 2 } else { 0 };
    let name = rest.get(prefix..).unwrap_or_default();
    prefix + name.find(|c| !is_word(c)).unwrap_or(name.len())
}

/// How many tokens the bracket that a source starts with spans, its closing one included.
pub fn group(tokens: &[Token]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        depth += usize::from(opens(token));
        if closes(token) {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Brackets and what closes them. Angle brackets are operators as well: they are none.
const BRACKETS: [(&str, &str); 3] = [("(", ")"), ("[", "]"), ("{", "}")];

/// Whether a bracket opens here.
pub fn opens(token: &Token) -> bool {
    BRACKETS.iter().any(|(opening, _)| token.is(opening))
}

/// Whether a bracket closes here.
pub fn closes(token: &Token) -> bool {
    BRACKETS.iter().any(|(_, closing)| token.is(closing))
}

/// The tokens that are compiled into the product: without the items, fields and arms under `#[cfg(test)]`.
pub fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let (mut kept, mut rest) = (Vec::new(), tokens);
    while let Some((first, after)) = rest.split_first() {
        if starts(rest, &["#", "!", "[", "cfg", "(", "test", ")", "]"]) {
            return Vec::new();
        }
        if starts(rest, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            rest = skip(rest, item(rest));
        } else {
            kept.push(*first);
            rest = after;
        }
    }
    kept
}

/// Whether these words and marks come first.
pub fn starts(tokens: &[Token], wanted: &[&str]) -> bool {
    tokens.len() >= wanted.len() && tokens.iter().zip(wanted).all(|(token, text)| token.is(text))
}

/// What is left after the first `length` tokens.
pub fn skip<'a, 'b>(tokens: &'b [Token<'a>], length: usize) -> &'b [Token<'a>] {
    tokens.get(length..).unwrap_or_default()
}

/// How many tokens an item spans, or a field or an arm, from its attributes to its end.
fn item(tokens: &[Token]) -> usize {
    let mut at = 0;
    while skip(tokens, at).first().is_some_and(|token| token.is("#")) {
        at += 1 + group(skip(tokens, at + 1));
    }
    let words =
        || skip(tokens, at).iter().filter_map(Token::word).filter(|word| !["pub", "crate", "super"].contains(word));
    let ends_in_semicolon = words().next().is_some_and(|word| ["use", "static", "type", "let"].contains(&word))
        || words().next() == Some("const") && words().nth(1) != Some("fn");
    let items = ["fn", "const", "async", "unsafe", "extern", "impl", "struct", "enum", "trait", "mod", "macro_rules"];
    let is_item = ends_in_semicolon || words().next().is_some_and(|word| items.contains(&word));
    while let Some(token) = skip(tokens, at).first() {
        let length = group(skip(tokens, at));
        if closes(token) {
            return at;
        }
        at += length;
        let is_end = token.is(";") || token.is(",") && !is_item || token.is("{") && is_item && !ends_in_semicolon;
        if is_end {
            return at;
        }
    }
    at
}

/// The functions that have a body, methods and functions inside functions too.
pub fn functions<'a>(tokens: &[Token<'a>]) -> Vec<Function<'a>> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.is("fn")) {
        if let Some(name) = tokens.get(at + 1).and_then(Token::word)
            && let Some(last) = end_of_body(skip(tokens, at + 2))
        {
            found.push(Function { name, first: token.line, last });
        }
    }
    found
}

/// The line on which the first body ends, unless a semicolon comes before it.
fn end_of_body(mut tokens: &[Token]) -> Option<usize> {
    loop {
        let first = tokens.first().filter(|token| !token.is(";"))?;
        let length = group(tokens);
        if first.is("{") {
            return tokens.get(length - 1).map(|token| token.line);
        }
        tokens = skip(tokens, length);
    }
}
