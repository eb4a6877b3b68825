//! Names that are no functions, with what to do instead.

/// Names kept for later, and names that users know from elsewhere, with what to do instead.
pub const UNSUPPORTED: &[(&str, &str)] = &[
    ("can", "questions about rights are not supported yet"),
    ("fits", "ask how many pods find no place: `o.unplaced(now, n, 0, null) == 0`"),
    ("schedulable", "ask how many pods find no place: `o.unplaced(now, n, 0, null) == 0`"),
    ("evictions", "no list: `under.evictions` says how many evictions an invariant survives"),
    ("authorizer", "questions about rights are not supported yet"),
    ("object", "there is no `object`: `forEach` names the object, and `o.at(now)` is what becomes of it"),
    ("oldObject", "there is no `oldObject`: the `forEach` variable is the object as it was before"),
    ("namespaceObject", "there is no `namespaceObject`: look the namespace up in `before.namespaces`"),
    ("variables", "there is no `variables`: the names of `let` are variables themselves"),
    ("dyn", "`dyn` is not supported: every expression has a type"),
    ("format", "`format` is not supported: join strings with `+` and `string(..)`"),
    ("quantity", "quantities are not supported: `o.requests('cpu')` gives numbers"),
    ("isQuantity", "quantities are not supported: `o.requests('cpu')` gives numbers"),
    ("url", "URLs are not supported"),
    ("ip", "IP addresses are not supported"),
    ("cidr", "IP addresses are not supported"),
    ("sortBy", "`sortBy` is not supported: `sort` orders plain values"),
    ("find", "`find` is not supported: use `matches`, `indexOf` and `substring`"),
    ("findAll", "`findAll` is not supported: use `matches`, `indexOf` and `substring`"),
];
