//! The evaluator against cel-rust, an implementation that shares no code with it, on generated expressions.
//!
//! Where one fails both must; which error it is may differ. Left out of the generated language, because cel-rust 0.15
//! differs from cel-spec there: optionals, two-variable macros, conversions of doubles, string extensions.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a helper of tests that fails fails the test")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use suture_specs::cel::{Scope, compile};
use suture_specs::eval::{Env, eval};
use suture_specs::ir::Type;
use suture_specs::value::{MapKey, Value};

/// Values as both sides print them: `None` for an error.
type Outcome = Option<String>;

fn ours(source: &str) -> Outcome {
    let scope = Scope::default()
        .with("x", Type::Int)
        .with("s", Type::String)
        .with("l", Type::list(Type::Int))
        .with("m", Type::map(Type::String, Type::Int));
    let expr = compile(source, &scope, None).unwrap_or_else(|error| panic!("{source}: {error}"));
    let mut env = Env::without_worlds();
    env.bind("x", Ok(Value::Int(3)));
    env.bind("s", Ok(Value::str("añb")));
    env.bind("l", Ok(Value::list(vec![Value::Int(1), Value::Int(0), Value::Int(3)])));
    let entry = |k: &str, v: i64| (MapKey::String(k.into()), Value::Int(v));
    env.bind("m", Ok(Value::map(BTreeMap::from([entry("a", 1), entry("b", 0)]))));
    eval(&expr, &env).ok().map(|value| print(&value))
}

fn print(value: &Value) -> String {
    match value {
        Value::String(s) => format!("{s:?}"),
        Value::Int(i) => i.to_string(),
        Value::Bool(b) => b.to_string(),
        Value::List(items) => format!("{:?}", items.iter().map(|v| print(&v)).collect::<Vec<_>>()),
        Value::Map(map) => format!("{:?}", map.iter().map(|(k, v)| (print(&k), print(&v))).collect::<BTreeMap<_, _>>()),
        other => format!("{other:?}"),
    }
}

fn theirs(source: &str) -> Outcome {
    let mut context = cel::Context::default();
    context.add_variable("x", 3i64).unwrap();
    context.add_variable("s", "añb").unwrap();
    context.add_variable("l", vec![1i64, 0, 3]).unwrap();
    context.add_variable("m", BTreeMap::from([("a", 1i64), ("b", 0)])).unwrap();
    let program = cel::Program::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    program.execute(&context).ok().map(|value| print_theirs(&value))
}

fn print_theirs(value: &cel::Value) -> String {
    match value {
        cel::Value::String(s) => format!("{:?}", s.as_str()),
        cel::Value::Int(i) => i.to_string(),
        cel::Value::Bool(b) => b.to_string(),
        cel::Value::List(items) => format!("{:?}", items.iter().map(print_theirs).collect::<Vec<_>>()),
        cel::Value::Map(map) => {
            let key = |k: &cel::objects::Key| match k {
                cel::objects::Key::String(s) => format!("{:?}", s.as_str()),
                other => format!("{other:?}"),
            };
            format!("{:?}", map.map.iter().map(|(k, v)| (key(k), print_theirs(v))).collect::<BTreeMap<_, _>>())
        }
        other => format!("{other:?}"),
    }
}

/// Expressions of each type, with the names in scope: `x`, `s`, `l`, `m`, and `e` (an int) inside macros.
#[derive(Clone, Debug)]
struct Exprs {
    int: BoxedStrategy<String>,
    bool: BoxedStrategy<String>,
    string: BoxedStrategy<String>,
    list: BoxedStrategy<String>,
    map: BoxedStrategy<String>,
}

fn leaves() -> Exprs {
    Exprs {
        int: prop_oneof![
            (-9i64..10).prop_map(|i| format!("({i})")),
            Just("x".into()),
            Just("9223372036854775807".into())
        ]
        .boxed(),
        bool: prop_oneof![Just("true".to_owned()), Just("false".to_owned())].boxed(),
        string: prop_oneof![Just("s".to_owned()), "[aé ]{0,3}".prop_map(|t| format!("'{t}'"))].boxed(),
        list: prop_oneof![Just("l".to_owned()), Just("[]".to_owned())].boxed(),
        map: prop_oneof![Just("m".to_owned()), Just("{'a': 5}".to_owned())].boxed(),
    }
}

fn deeper(e: &Exprs) -> Exprs {
    let two = |a: &BoxedStrategy<String>, b: &BoxedStrategy<String>, form: fn(String, String) -> String| {
        (a.clone(), b.clone()).prop_map(move |(a, b)| form(a, b)).boxed()
    };
    let operator = |side: &BoxedStrategy<String>, ops: &'static [&'static str]| {
        (side.clone(), prop::sample::select(ops), side.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")).boxed()
    };
    // the variable of a macro: an int among ints
    let body_int = |e: &Exprs| prop_oneof![e.int.clone(), Just("e".to_owned()), Just("(6 / e)".to_owned())].boxed();
    let body_bool = |e: &Exprs| two(&body_int(e), &body_int(e), |a, b| format!("({a} >= {b})"));
    Exprs {
        int: prop_oneof![
            e.int.clone(),
            operator(&e.int, &["+", "-", "*", "/", "%"]),
            e.list.clone().prop_map(|l| format!("size({l})")),
            e.string.clone().prop_map(|s| format!("size({s})")),
            two(&e.list, &e.int, |l, i| format!("{l}[{i}]")),
            two(&e.map, &e.string, |m, k| format!("{m}[{k}]")),
            (e.bool.clone(), e.int.clone(), e.int.clone()).prop_map(|(c, a, b)| format!("({c} ? {a} : {b})")),
            e.int.clone().prop_map(|i| format!("int(string({i}))")),
            e.int.clone().prop_map(|i| format!("(-{i})")),
        ]
        .boxed(),
        bool: prop_oneof![
            e.bool.clone(),
            operator(&e.bool, &["&&", "||", "==", "!="]),
            operator(&e.int, &["==", "!=", "<", "<=", ">", ">="]),
            operator(&e.string, &["==", "<", ">="]),
            operator(&e.list, &["==", "!="]),
            operator(&e.map, &["==", "!="]),
            e.bool.clone().prop_map(|b| format!("!{b}")),
            two(&e.int, &e.list, |i, l| format!("({i} in {l})")),
            two(&e.string, &e.map, |k, m| format!("({k} in {m})")),
            two(&e.list, &body_bool(e), |l, b| format!("{l}.all(e, {b})")),
            two(&e.list, &body_bool(e), |l, b| format!("{l}.exists(e, {b})")),
            two(&e.list, &body_bool(e), |l, b| format!("{l}.exists_one(e, {b})")),
            two(&e.string, &e.string, |a, b| format!("{a}.startsWith({b})")),
            two(&e.string, &e.string, |a, b| format!("{a}.contains({b})")),
            two(&e.string, &e.string, |a, b| format!("{a}.endsWith({b})")),
        ]
        .boxed(),
        string: prop_oneof![
            e.string.clone(),
            operator(&e.string, &["+"]),
            e.int.clone().prop_map(|i| format!("string({i})")),
            e.bool.clone().prop_map(|b| format!("({b} ? 'a' : 'b')")),
        ]
        .boxed(),
        list: prop_oneof![
            e.list.clone(),
            operator(&e.list, &["+"]),
            two(&e.int, &e.int, |a, b| format!("[{a}, {b}]")),
            two(&e.list, &body_int(e), |l, b| format!("{l}.map(e, {b})")),
            two(&e.list, &body_bool(e), |l, b| format!("{l}.filter(e, {b})")),
        ]
        .boxed(),
        map: prop_oneof![e.map.clone(), two(&e.string, &e.int, |k, v| format!("{{{k}: {v}}}")),].boxed(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn both_implementations_agree(source in {
        let e = deeper(&deeper(&deeper(&leaves())));
        prop_oneof![e.int, e.bool, e.string, e.list, e.map]
    }) {
        prop_assert_eq!(ours(&source), theirs(&source), "{}", source);
    }
}
