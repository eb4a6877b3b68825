//! The strict pass against `cel-core`'s type checker: what is typed here is typed there, and the same.

use cel_core::{CelType, Env};

use super::{Scope, compile};
use crate::ir::Type;

fn theirs(ty: &Type) -> CelType {
    match ty {
        Type::Bool => CelType::Bool,
        Type::Int => CelType::Int,
        Type::UInt => CelType::UInt,
        Type::Double => CelType::Double,
        Type::String => CelType::String,
        Type::Bytes => CelType::Bytes,
        Type::Timestamp => CelType::Timestamp,
        Type::Duration => CelType::Duration,
        Type::Null => CelType::Null,
        Type::List(item) => CelType::list(theirs(item)),
        Type::Map(key, value) => CelType::map(theirs(key), theirs(value)),
        Type::Optional(inner) => CelType::optional(theirs(inner)),
        _ => CelType::Dyn,
    }
}

#[test]
fn the_type_checker_of_cel_core_agrees() {
    let vars = [
        ("i", Type::Int),
        ("u", Type::UInt),
        ("d", Type::Double),
        ("s", Type::String),
        ("b", Type::Bool),
        ("t", Type::Timestamp),
        ("w", Type::Duration),
        ("l", Type::list(Type::Int)),
        ("m", Type::map(Type::String, Type::Int)),
    ];
    let mut scope = Scope::default();
    let mut env = Env::with_standard_library().with_extension(cel_core::ext::optionals_extension());
    for (name, ty) in vars {
        env.add_variable(name, theirs(&ty));
        scope = scope.with(name, ty);
    }
    for source in [
        "i + 1",
        "u * 2u",
        "-d",
        "s + 'x'",
        "t - t",
        "t + w",
        "w - w",
        "i < 3 && b || !b",
        "b ? l : [1]",
        "l + [2]",
        "l[0]",
        "m['a']",
        "m.a",
        "has(m.a)",
        "'a' in m",
        "i in l",
        "size(s) + l.size()",
        "s.startsWith('a') && s.matches('a+')",
        "l.all(x, x > 0)",
        "l.exists(x, x == i)",
        "l.exists_one(x, x == i)",
        "l.map(x, string(x))",
        "l.map(x, x > 1, x * 2)",
        "l.filter(x, x > 1)",
        "m.map(k, m[k])",
        "m.filter(k, k != '')",
        "cel.bind(y, i + 1, y * y)",
        "m.?a.orValue(1)",
        "l[?0].hasValue()",
        "optional.of(s)",
        "int('1') + int(d)",
        "string(t)",
        "t.getHours() + w.getSeconds()",
        "[[1], [2]].map(x, x.map(y, y + 1))",
        "{'a': [1]}",
        "timestamp('2020-01-01T00:00:00Z')",
    ] {
        let ours = compile(source, &scope, None).unwrap_or_else(|error| panic!("{source}: {error}"));
        let checked = env.compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        assert_eq!(checked.result_type(), Some(&theirs(&ours.ty)), "{source}");
    }
    for source in ["i + s", "i + d", "s < i", "l + ['a']", "!i", "s.size(1)", "f(i)", "z", "s.contains(i)"] {
        assert!(compile(source, &scope, None).is_err(), "{source}");
    }
}
