//! The codes of errors: what tools show beside a message, and a page about each (`suture explain E0103`).

use crate::globs::glob_matches;

/// One class of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// `E0103`; `W` for what is only warned about.
    pub code: &'static str,
    /// What is wrong, in general.
    pub title: &'static str,
    /// What it means, and what to do.
    pub page: &'static str,
    /// The messages of the class, with `*` for what differs.
    messages: &'static [&'static str],
}

/// The class of an error in a document whose message no other class has.
const OF_DOCUMENTS: &str = "E0008";
/// The class of an error in an expression whose message no other class has.
const OF_EXPRESSIONS: &str = "E0105";

/// The code of a message: of an expression that does not compile, or of a document.
pub(super) fn code_of(message: &str, is_expression: bool) -> &'static str {
    let is_of = |code: &&Code| code.messages.iter().any(|pattern| glob_matches(pattern, message));
    let of_kind = |code: &&Code| code.code.starts_with("E01") == is_expression;
    let default = if is_expression { OF_EXPRESSIONS } else { OF_DOCUMENTS };
    // that an expression of a document has another type than its field is said of the document
    let found = CODES.iter().filter(of_kind).find(is_of).or_else(|| CODES.iter().find(is_of));
    found.map_or(default, |code| code.code)
}

/// The class of a code, in any case of its letter.
pub fn find_code(code: &str) -> Option<&'static Code> {
    CODES.iter().find(|known| known.code.eq_ignore_ascii_case(code))
}

/// All codes, in order.
pub const CODES: &[Code] = &[
    Code {
        code: "E0001",
        title: "the text is neither YAML nor JSON",
        page: "The file is read as JSON if it starts like JSON, else as YAML. Often a bracket or quote is not closed, a tab indents a line, or a value with `: ` or ` #` in it is not in quotes. The other documents of the file, which `---` separates, are read all the same.",
        messages: &[],
    },
    Code {
        code: "E0002",
        title: "the document is none of Suture's kinds",
        page: "A document has `apiVersion: suture.dev/v1alpha1`, a `kind` that is Invariant, NamespacedInvariant, InvariantTemplate, ResourceAdapter, OperatorGrant, Exemption or Suite, `metadata.name` and `spec`. A NamespacedInvariant has `metadata.namespace` too.",
        messages: &[
            "*is no kind of *",
            "* is not `suture.dev/*",
            "`kind` is missing",
            "`metadata.name` is missing",
            "`spec` is missing",
            "*needs `metadata.namespace`",
        ],
    },
    Code {
        code: "E0003",
        title: "there is no such field",
        page: "Unknown fields are errors everywhere: a field that is misspelt, or at the wrong depth, would mean nothing. The help names the nearest field, or the place where this one belongs.",
        messages: &["unknown field *"],
    },
    Code {
        code: "E0004",
        title: "a field has a value of the wrong type",
        page: "The message says which type the field has. Quotes make a string of a number: `max: \"1\"` is no integer.",
        messages: &["expected a *", "expected an *", "expected true or false*"],
    },
    Code {
        code: "E0005",
        title: "a value is none of those that a field allows",
        page: "The message lists the values. They are case-sensitive.",
        messages: &["*is not one of *", "expected one of *"],
    },
    Code {
        code: "E0006",
        title: "a field is missing",
        page: "The message names the field. Without it the document does not say what it is for.",
        messages: &["*is missing*", "* needs `*", "a step needs one of *", "an invariant needs *", "a budget has *"],
    },
    Code {
        code: "E0007",
        title: "two documents have one name",
        page: "Two documents of a kind have the same name, two adapters are for the same kind, or a template has the name of a shipped one. Rename one of them, or load only one of the files.",
        messages: &["*is there twice*", "*is the name of a shipped template"],
    },
    Code {
        code: "E0008",
        title: "a value makes no sense",
        page: "The value has the right type, and cannot be meant: a percentage above 100, a negative number, no time at all, a date that is none, a verb that cannot be counted.",
        messages: &[],
    },
    Code {
        code: "E0101",
        title: "an expression cannot be parsed",
        page: "The text is no CEL. Write `&&`, `||`, `!` and `==`, not `and`, `or`, `not` and `=`. Strings are in quotes, and every bracket is closed. Messages (`Type{field: 1}`) do not exist here.",
        messages: &[
            "unexpected *",
            "*is a reserved word of CEL",
            "*does not fit 64 bits",
            "in a string: *",
            "a string is not closed",
            "the expression is empty",
            "this form is not supported*",
            "message literals *",
            "only names can be called*",
            "the expression *",
        ],
    },
    Code {
        code: "E0102",
        title: "a name is not known",
        page: "Known are `before`, `now`, `params`, `request`, `requests`, `time`, the variable of `forEach`, the names of `let` and the variables of macros. `after` is known with `hold: After` only. A state is named where it is asked, `p.existsIn(now)`, and nowhere else.",
        messages: &[
            "*is not known",
            "*is only known with *",
            "a state has no other name *",
            "*cannot be the name of a variable",
            "* names both variables",
            "expected the name of a variable*",
            "there is no parameter *",
        ],
    },
    Code {
        code: "E0103",
        title: "there is no such function",
        page: "specs/README.md lists all functions. A method has a receiver, `p.ready()`; a function has none, `floor(params.floor, 3)`.",
        messages: &["there is no function *", "there is no method *", "*is no method of *"],
    },
    Code {
        code: "E0104",
        title: "a value has no such field",
        page: "Fields of built-in kinds are those of Kubernetes' OpenAPI schemas. A field that may be absent is read with `o.?spec.?x.orValue(..)`, and tested with `has(o.spec.x)`. Lists have no fields: use `exists`, `all`, `filter`, `map` or an index.",
        messages: &[
            "* has no field *",
            "* has no fields",
            "a state has no list *",
            "* has no items",
            "`*` is no kind*",
        ],
    },
    Code {
        code: "E0105",
        title: "the types of an expression do not fit",
        page: "Every expression has a type, and both sides of an operator have the same. Convert with `int(..)`, `double(..)` or `string(..)`. Quantities and fields of custom resources are of type `any`: say what one is before it is compared. A clause is a bool.",
        messages: &["*different types*", "*is not defined on *", "expected *", "*unknown type*", "*is never null"],
    },
    Code {
        code: "E0106",
        title: "a function has other arguments",
        page: "The message says how many arguments there may be, or of which form. A macro (`exists`, `all`, `map`, `filter`) takes a name and an expression.",
        messages: &["*takes *", "*does not take *", "*asks for a field*", "* needs a body*"],
    },
    Code {
        code: "E0107",
        title: "a NamespacedInvariant looks beyond its namespace",
        page: "It judges objects of its own namespace, and reads no other. List with `before.inNamespace('ns', 'Pod')`, or write an Invariant, which whoever may write it for the whole cluster can.",
        messages: &["*may look beyond namespace *"],
    },
    Code {
        code: "E0108",
        title: "an expression can never be decided",
        page: "The future decides what is in the list, so the solver knows how many items of each value it has, and no order. Texts, positions and lists of lists cannot be made of it. Count instead: `pods.map(p, p.zone()).distinct().size() >= 2`, `pods.exists(p, ..)`, `pods.all(p, ..)`. In a `messageExpression` everything is allowed: it is evaluated in the one future that breaks the clause. Values of Secrets and ConfigMaps are not kept at all; whether a key is there can be decided: `'key' in object.data`.",
        messages: &["*can never be decided"],
    },
    Code {
        code: "E0201",
        title: "there is no such template, or it has other parameters",
        page: "specs/library/README.md lists the shipped templates and their parameters; templates of your own are InvariantTemplates in the files that are loaded together. An invariant names a template, or has `forEach` and `require` of its own.",
        messages: &["there is no template *", "template `*", "only a template has parameters", "* is the template's*"],
    },
    Code {
        code: "E0202",
        title: "it is not clear which objects are meant",
        page: "`forEach` has `var`, and `kind` or `kinds`. A kind without a group is a built-in one. Objects of a kind that lies in no namespace are no instances of a NamespacedInvariant.",
        messages: &[
            "*is no built-in kind*",
            "objects of this kind lie in no namespace",
            "*is no name: *",
            "*has a meaning already",
        ],
    },
    Code {
        code: "E0203",
        title: "named values use one another",
        page: "Values of `let` may stand in any order, and may use each other, as long as none needs itself.",
        messages: &["*use one another", "* uses itself"],
    },
    Code {
        code: "E0204",
        title: "this is not supported",
        page: "The field or fault has a meaning that this version does not have. README.md lists what is missing. Take it out: nothing that is written is passed over in silence.",
        messages: &["*is not supported yet", "*is not shipped yet*"],
    },
    Code {
        code: "E0301",
        title: "a case names an invariant that its suite does not have",
        page: "`by` names invariants that must be among the broken ones. One that the suite does not load can never be. Grants have `operator-in-scope` and `deletion-budget`.",
        messages: &["`by` names *"],
    },
    Code {
        code: "E0302",
        title: "two cases of a suite have one name",
        page: "A failing case is told by its name, and `--run` selects by it.",
        messages: &["a case of this name *"],
    },
    Code {
        code: "E0303",
        title: "a case without steps",
        page: "It asks nothing, and always passes.",
        messages: &["a case without steps *"],
    },
    Code {
        code: "E0304",
        title: "an Exemption that exempts nothing",
        page: "Its invariant is not among the files, nor shipped: it is misspelt, or not loaded together with it.",
        messages: &["*exempts from nothing*"],
    },
    Code {
        code: "W0401",
        title: "a clause reads no future",
        page: "A clause that does not read `now` (or `after`), directly or by a named value, says nothing about what a change does: it holds or fails whatever is asked. Write `o.at(now)` for the object in the future, guarded by `!o.liveIn(now) || ..`.",
        messages: &["the clause never reads `now`*"],
    },
    Code {
        code: "W0402",
        title: "an invariant without instances",
        page: "No object of the state that `--state` names is an instance: `forEach` or `match` selects none. Of a kind that comes later this is as it should be; else a name is misspelt.",
        messages: &["no object of the state *"],
    },
    Code {
        code: "W0403",
        title: "an Exemption is over",
        page: "Its time has passed: it lifts nothing any more. Take it out, or renew it.",
        messages: &["* has expired*"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_there_once_and_has_a_page() {
        let codes: Vec<&str> = CODES.iter().map(|code| code.code).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
        assert!(CODES.iter().all(|code| !code.title.is_empty() && code.page.ends_with('.')));
        assert_eq!(find_code("e0103").map(|code| code.title), Some("there is no such function"));
        assert_eq!(find_code("E9999"), None);
    }

    #[test]
    fn messages_have_codes() {
        for (message, is_expression, code) in [
            ("unknown field `reson`", false, "E0003"),
            ("`reason` is missing", false, "E0006"),
            ("expected a list, found a map", false, "E0004"),
            ("expected one of `Deny`, `Warn`, found an integer", false, "E0005"),
            ("`101` is more than a hundred", false, "E0008"),
            ("expected bool, found int", true, "E0105"),
            ("expected int, found bool", false, "E0105"),
            ("there is no method `redy`", true, "E0103"),
            ("unexpected `2`", true, "E0101"),
            ("PodSpec has no field `nodeNam`", true, "E0104"),
            ("`p` is not known", true, "E0102"),
        ] {
            assert_eq!(code_of(message, is_expression), code, "{message}");
        }
    }
}
