//! The messages for whoever writes expressions and documents: each with its place, reason and help.
#![allow(clippy::unwrap_used, reason = "a helper of tests that fails fails the test")]

use suture_specs::cel::{Scope, compile};
use suture_specs::compile::compile_invariant;
use suture_specs::ir::Type;
use suture_specs::library::Library;
use suture_specs::spec::{Spec, parse_specs};

/// `message @ text (help)` of an expression over a pod `p`, a service `svc` and any object `o`.
fn refusal(source: &str) -> String {
    let scope = Scope::invariant(false)
        .with("p", Type::object("Pod"))
        .with("svc", Type::object("Service"))
        .with("o", Type::Object(None))
        .with_params([("floor".into(), Type::Any), ("count".into(), Type::Int)].into());
    match compile(source, &scope, None) {
        Ok(expr) => format!("fine: {}", expr.ty),
        Err(error) => {
            let help = error.help_text().map(|h| format!(" ({h})")).unwrap_or_default();
            format!("{} @ `{}`{help}", error.message(), error.span().text(source))
        }
    }
}

/// Fails unless each expression is refused, or fine, as it should be.
#[track_caller]
fn expect_refusals(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(source, expected)| {
            let found = refusal(source);
            (found != *expected).then(|| format!("{source}\n  expected {expected}\n  found    {found}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn fields_and_methods() {
    expect_refusals(&[
        ("p.spec.containers.exists(c, c.image == 'x')", "fine: bool"),
        ("p.spec.conatiners", "PodSpec has no field `conatiners` @ `conatiners` (did you mean `containers`?)"),
        ("p.metadata.label", "ObjectMeta has no field `label` @ `label` (did you mean `labels`?)"),
        ("p.ready", "Pod has no field `ready` @ `ready` (`ready` is a method: write `.ready(..)`)"),
        ("p.spec()", "there is no method `spec` @ `spec` (`spec` is a field: write it without brackets)"),
        ("p.redy()", "there is no method `redy` @ `redy` (did you mean `ready`?)"),
        ("svc.ready()", "`ready` is no method of Service @ `ready` (it is `Pod.ready() → bool`)"),
        ("ready(p)", "there is no function `ready` @ `ready` (it is written `Pod.ready() → bool`)"),
        ("o.ready()", "fine: bool"),
        ("o.spec.foo.bar == 3", "fine: bool"),
        ("o.metadata.nam", "ObjectMeta has no field `nam` @ `nam` (did you mean `name`?)"),
    ]);
}

/// What an invariant reads of the future is told by where it says `now`: an alias of it was taken for nothing.
#[test]
fn a_state_has_no_other_name() {
    let help = "(write `now` or `before` where it is asked: `p.existsIn(now)`)";
    let refused = |text: &str| format!("a state has no other name than `before` and `now` @ `{text}` {help}");
    expect_refusals(&[
        ("cel.bind(w, now, w.pods.size() > 0)", &refused("w")),
        ("[before, now].all(w, p.existsIn(w))", &refused("[before, now]")),
        ("{'w': now}['w'].pods.size() > 0", &refused("{'w': now}")),
        ("(p.ready() ? before : now).pods.size() > 0", &refused("p.ready() ? before : now")),
        ("optional.of(now).hasValue()", &refused("optional.of(now)")),
        ("p.existsIn(now) && !p.existsIn(before)", "fine: bool"),
        (".now.pods.size() > 0", "fine: bool"),
    ]);
}

#[test]
fn states_and_their_lists() {
    expect_refusals(&[
        ("befor.pods", "`befor` is not known @ `befor` (did you mean `before`?)"),
        ("before.pdos", "a state has no list `pdos` @ `pdos` (did you mean `pods`?)"),
        ("before.widgets", "a state has no list `widgets` @ `widgets` (other kinds are listed by `objects('Kind')`)"),
        ("before.objects('Deployment')", "fine: list<Deployment>"),
        ("before.objects('apps', 'Deployment')", "fine: list<Deployment>"),
        ("before.objects('Widget')", "fine: list<object>"),
        ("before.objects('pods')", "`pods` is no kind @ `'pods'` (did you mean `Pod`?)"),
        ("p.at(now).ready()", "fine: bool"),
        ("p.at(before).spec.nodeName == 'n'", "fine: bool"),
        ("p.at('now')", "`at` is not defined on Pod with string @ `at` (it is `object.at(state) → object`)"),
        ("p.at()", "`at` takes 1 arguments, found 0 @ `at` (it is `object.at(state) → object`)"),
    ]);
}

#[test]
fn what_is_not_known_or_not_supported() {
    expect_refusals(&[
        (
            "after.pods",
            "`after` is only known with `hold: After` @ `after` (write `now`, or set `hold: After` to judge settled states only)",
        ),
        ("can('get')", "there is no function `can` @ `can` (questions about rights are not supported yet)"),
        (
            "p.fits(now)",
            "there is no method `fits` @ `fits` (ask how many pods find no place: `o.unplaced(now, n, 0, null) == 0`)",
        ),
        (
            "now.evictions",
            "a state has no list `evictions` @ `evictions` (no list: `under.evictions` says how many evictions an invariant survives)",
        ),
        (
            "object.spec",
            "`object` is not known @ `object` (there is no `object`: `forEach` names the object, and `o.at(now)` is what becomes of it)",
        ),
        (
            "oldObject == null",
            "`oldObject` is not known @ `oldObject` (there is no `oldObject`: the `forEach` variable is the object as it was before)",
        ),
        ("dyn(p)", "there is no function `dyn` @ `dyn` (`dyn` is not supported: every expression has a type)"),
    ]);
}

#[test]
fn types_that_do_not_fit() {
    expect_refusals(&[
        ("p.requests('cpu') > 1.5", "fine: bool"),
        (
            "p.requests('cpu') + 1.5",
            "`+` is not defined on int and double @ `p.requests('cpu') + 1.5` (both sides must be of one type: convert one with `int(..)`, `double(..)` or `string(..)`)",
        ),
        (
            "p.requests('cpu') == 1.5",
            "`==` on different types: int and double @ `p.requests('cpu') == 1.5` (convert one of them: `int(..)` or `double(..)`)",
        ),
        (
            "p.spec.nodeName == null",
            "a value of type string is never null @ `p.spec.nodeName == null` (ask with `has(..)` whether it is there, or read it with `.?field.orValue(..)`)",
        ),
        (
            "p.?spec.nodeName == 'n'",
            "`==` on different types: optional<string> and string @ `p.?spec.nodeName == 'n'` (take the value of the optional with `.orValue(..)`)",
        ),
        ("p.?spec.?nodeName.orValue('') == 'n'", "fine: bool"),
        ("has(p.spec.nodeNam)", "PodSpec has no field `nodeNam` @ `nodeNam` (did you mean `nodeName`?)"),
        ("has(p.spec.nodeName)", "fine: bool"),
        ("p in before.services", "fine: bool"),
        (
            "p.metadata.name in before.pods",
            "`in` on different types: string and Pod @ `p.metadata.name in before.pods`",
        ),
    ]);
}

#[test]
fn parameters_and_the_request() {
    expect_refusals(&[
        ("params.floor > 1", "fine: bool"),
        ("params.flor > 1", "there is no parameter `flor` @ `flor` (did you mean `floor`?)"),
        (
            "params.floor + params.floor",
            "the type of `+` is not clear: int or uint or double or string or list @ `params.floor + params.floor` (say what the arguments of unknown type are: `int(..)`, `string(..)`, `double(..)`)",
        ),
        (
            "params.floor == o.spec.x",
            "`==` on two values of unknown type @ `params.floor == o.spec.x` (say what one of them is: `string(..)`, `int(..)`, `bool(..)`)",
        ),
        ("params.floor.at(now)", "`at` is not defined on any with state @ `at` (it is `object.at(state) → object`)"),
        ("params.count + 1", "fine: int"),
        ("floor(params.floor, 3)", "fine: int"),
        ("request.user.username == 'x'", "fine: bool"),
        (
            "request.userInfo",
            "request has no field `userInfo` @ `userInfo` (there are `dryRun`, `kind`, `name`, `namespace`, `operation`, `options`, `subresource`, `uid`, `user`)",
        ),
        ("time > p.metadata.creationTimestamp", "fine: bool"),
    ]);
}

#[test]
fn lists_and_macros() {
    expect_refusals(&[
        ("p.references().all(r, r.resolvesIn(now))", "fine: bool"),
        ("p.references().all(r, r.kin == '')", "reference has no field `kin` @ `kin` (did you mean `kind`?)"),
        ("before.pods.filter(p, p.ready()).size()", "fine: int"),
        ("before.pods.size", "list<Pod> has no field `size` @ `size` (`size` is a method: write `.size(..)`)"),
        (
            "before.pods.spec",
            "a value of type list<Pod> has no fields @ `spec` (use `exists`, `all`, `filter` or `map`, or an index)",
        ),
        ("before.pods.ready()", "`ready` is no method of list<Pod> @ `ready` (it is `Pod.ready() → bool`)"),
        (
            "before.exists(p, true)",
            "`exists` needs a list or a map, found state @ `before` (take a list of it: `now.pods`)",
        ),
        ("before.pods.map(now, 1)", "`now` cannot be the name of a variable @ `now`"),
        ("[p, svc].map(x, x.name())", "fine: list<string>"),
        ("true ? p : svc", "fine: object"),
        ("true ? [p] : []", "fine: list<Pod>"),
        ("p.owners()[0].uid", "fine: string"),
        ("svc.hostClaims(now).exists(c, now.hostClaimants(c).size() > 1)", "fine: bool"),
        ("p.spec.containers.map(c, c.resources.requests['cpu'])", "fine: list<any>"),
    ]);
}

#[test]
fn what_is_no_expression() {
    expect_refusals(&[("1 2", "unexpected `2` @ `2`"), ("p.", "unexpected end of the expression @ ``")]);
}

#[test]
fn an_expression_is_shown_with_its_place() {
    let scope = Scope::invariant(false).with("svc", Type::object("Service"));
    let error = compile("svc.endpoints(now).sise() >= 1", &scope, None).unwrap_err();
    let mut shown = String::new();
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
    handler.render_report(&mut shown, &error).unwrap();
    assert_eq!(
        shown.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"),
        "  × there is no method `sise`
   ╭────
 1 │ svc.endpoints(now).sise() >= 1
   ·                    ──┬─
   ·                      ╰── no such method
   ╰────
  help: did you mean `size`?"
    );
}

fn problems(yaml: &str) -> Vec<String> {
    let shown = |errors: Vec<suture_specs::spec::SpecError>| -> Vec<String> {
        let one = |e: &suture_specs::spec::SpecError| {
            let line = e.line.map(|line| format!(":{line}")).unwrap_or_default();
            let path = if e.path.is_empty() { String::new() } else { format!("{}: ", e.path) };
            let help = e.help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default();
            format!("{}{line}: {path}{}{help}", e.file, e.message)
        };
        errors.iter().map(one).collect()
    };
    let specs = match parse_specs(yaml, "a.yaml") {
        Ok(specs) => specs,
        Err(errors) => return shown(errors),
    };
    let mut all = Vec::new();
    for spec in specs {
        if let Spec::Invariant(invariant) = spec
            && let Err(errors) = compile_invariant(&invariant, &Library::default())
        {
            all.extend(shown(errors));
        }
    }
    all
}

/// Fails unless each document has the problems that it should have.
#[track_caller]
fn expect_problems(cases: &[(&str, &[&str])]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(yaml, expected)| {
            let found = problems(yaml);
            (found != *expected).then(|| format!("{yaml}\n  expected {expected:#?}\n  found    {found:#?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn documents_have_a_kind_a_name_and_a_spec() {
    expect_problems(&[
        ("a: [\n", &["a.yaml:1: unclosed bracket '['"]),
        ("kind: Pod\nmetadata: {name: x}\n", &["a.yaml:1: kind: `Pod` is no kind of suture.dev/v1alpha1"]),
        (
            "kind: Invarant\nmetadata: {name: x}\n",
            &["a.yaml:1: kind: `Invarant` is no kind of suture.dev/v1alpha1 (did you mean `Invariant`?)"],
        ),
        (
            "apiVersion: suture.dev/v1\nkind: Invariant\n",
            &[
                "a.yaml:1: apiVersion: `suture.dev/v1` is not `suture.dev/v1alpha1`",
                "a.yaml:1: metadata.name: `metadata.name` is missing",
            ],
        ),
        ("kind: Invariant\nspec: {}\n", &["a.yaml:1: metadata.name: `metadata.name` is missing"]),
        ("kind: Invariant\nmetadata: {name: x}\n", &["a.yaml:1: spec: `spec` is missing"]),
        (
            "kind: Invariant\nmetadata: {name: x}\nspec: {}\n",
            &["a.yaml:3: spec: an invariant needs `forEach` and `require`, or `template`"],
        ),
    ]);
}

#[test]
fn fields_of_documents() {
    expect_problems(&[
        (
            "---\nkind: Exemption\nmetadata: {name: x}\nspec:\n  invariant: q\n  reson: because\n",
            &[
                "a.yaml:6: spec.reson: unknown field `reson` (did you mean `reason`?)",
                "a.yaml:4: spec: `expires` is missing",
                "a.yaml:4: spec: `reason` is missing",
            ],
        ),
        (
            "kind: Invariant\nmetadata: {name: x}\nspec:\n  forEach: {var: p, kind: Pod}\n  hold: Durring\n  action: 3\n",
            &[
                "a.yaml:6: spec.action: expected one of `Deny`, `Warn`, `Audit`, found an integer",
                "a.yaml:5: spec.hold: `Durring` is not one of `During`, `AtOnce`, `After` (did you mean `During`?)",
            ],
        ),
        (
            "kind: Invariant\nmetadata: {name: x}\nspec:\n  forEach: {var: p, kid: Pod}\n  require: {}\n",
            &[
                "a.yaml:4: spec.forEach.kid: unknown field `kid` (did you mean `kind`?)",
                "a.yaml:5: spec.require: expected a list, found a map",
            ],
        ),
    ]);
}

#[test]
fn objects_and_expressions_of_invariants() {
    expect_problems(&[
        (
            "kind: Invariant\nmetadata: {name: x}\nspec:\n  forEach: {var: p, kind: Pods}\n  require: [{expression: 'true'}]\n",
            &[
                "a.yaml:4: spec.forEach.kind: `Pods` is no built-in kind (did you mean `Pod`? if it is a custom resource, give its group)",
            ],
        ),
        (
            "kind: Invariant\nmetadata: {name: x}\nspec:\n  forEach: {var: now, kind: Pod}\n  require: [{expression: 'true'}]\n",
            &["a.yaml:4: spec.forEach.var: `now` has a meaning already"],
        ),
        (
            "kind: Invariant\nmetadata: {name: x}\nspec:\n  forEach: {var: p, kind: Pod}\n  let:\n    a: b + 1\n    b: a + 1\n  require: [{expression: 'true'}]\n",
            &["a.yaml:6: spec.let.a: `a`, `b` use one another"],
        ),
        (
            "kind: Invariant\nmetadata: {name: x}\nspec:\n  forEach: {var: p, kind: Pod}\n  require:\n  - expression: 'true'\n  - expression: p.at(now).redy()\n    messageExpression: '1'\n  degree: 'true'\n",
            &[
                "a.yaml:7: spec.require[1].expression: there is no method `redy` (did you mean `ready`?)",
                "a.yaml:9: spec.degree: expected int, found bool",
            ],
        ),
        (
            "kind: Invariant\nmetadata: {name: x}\nspec:\n  forEach: {var: o, kind: {group: example.com, kind: Widget}}\n  require: [{expression: o.spec.ok}]\n",
            &[
                "a.yaml:5: spec.require[0].expression: expected bool, found a value of unknown type (write `bool(..)` around it)",
            ],
        ),
        (
            "kind: Invariant\nmetadata: {name: x}\nspec:\n  forEach: {var: p, kind: Pod}\n  params: {a: 1}\n  require: [{expression: 'true'}]\n",
            &[
                "a.yaml:5: spec.params: only a template has parameters (write the values into the expressions, or name a `template`)",
            ],
        ),
    ]);
}

#[test]
fn namespaced_invariants_look_into_their_namespace_only() {
    expect_problems(&[
        (
            "kind: NamespacedInvariant\nmetadata: {name: x, namespace: shop}\nspec:\n  forEach: {var: svc, kind: Service}\n  let:\n    own: now.inNamespace('shop', 'Pod').size() + svc.endpoints(now).size() + now.podsMatching(svc.metadata.namespace, svc.spec.selector).size()\n  require: [{expression: own > 0}]\n",
            &[],
        ),
        (
            "kind: NamespacedInvariant\nmetadata: {name: x, namespace: shop}\nspec:\n  forEach: {var: svc, kind: Service}\n  require:\n  - expression: now.pods.size() > 0\n  - expression: now.inNamespace('bank', 'Secret').size() > 0\n  - expression: now.has('Secret', 'bank', 's')\n  - expression: svc.referrers(now).size() > 0\n",
            &[
                "a.yaml:6: spec.require[0].expression: `pods` may look beyond namespace `shop` (list its own: `before.inNamespace('shop', 'Pod')`)",
                "a.yaml:7: spec.require[1].expression: `inNamespace` may look beyond namespace `shop` (its own namespace is `'shop'`)",
                "a.yaml:8: spec.require[2].expression: `has` may look beyond namespace `shop` (its own namespace is `'shop'`)",
                "a.yaml:9: spec.require[3].expression: `referrers` may look beyond namespace `shop` (an Invariant may use it)",
            ],
        ),
        (
            "kind: NamespacedInvariant\nmetadata: {name: x, namespace: shop}\nspec:\n  forEach: {var: n, kind: Node}\n  require: [{expression: n.existsIn(now)}]\n",
            &[
                "a.yaml:4: spec.forEach: objects of this kind lie in no namespace (a NamespacedInvariant judges those of its own: write an Invariant)",
            ],
        ),
        (
            "kind: NamespacedInvariant\nmetadata: {name: x}\nspec: {}\n",
            &["a.yaml:2: metadata: a NamespacedInvariant needs `metadata.namespace`"],
        ),
    ]);
}

#[test]
fn suites() {
    let suite = |case: &str| {
        problems(&format!(
            "kind: Suite\nmetadata: {{name: x}}\nspec:\n  cases:\n  - name: c\n    steps:\n    - {case}\n"
        ))
    };
    for (step, expected) in [
        ("{delete: {kind: Pod, name: a}, expect: Allowed}", vec![]),
        (
            "{delete: {kind: {group: g, kind: K}, name: a}, expect: Denied, by: [i], as: {username: u, groups: [g]}}",
            vec![],
        ),
        ("{observe: {after: 30s}}", vec![]),
        ("{delete: {kind: Pod, name: a}}", vec!["a.yaml:7: spec.cases[0].steps[0]: `expect` is missing"]),
        (
            "{expect: Allowed}",
            vec![
                "a.yaml:7: spec.cases[0].steps[0]: a step needs one of `create`, `update`, `patch`, `delete`, `scale`, `evict`, `bind`, `review`, `batch`, `observe`",
            ],
        ),
        (
            "{delete: {kind: Pod, name: a}, evict: {namespace: a, name: b}, expect: Allowed}",
            vec!["a.yaml:7: spec.cases[0].steps[0]: a step has one verb, this has `delete` and `evict`"],
        ),
        (
            "{scale: {kind: Deployment, name: a}, expect: Allowed}",
            vec!["a.yaml:7: spec.cases[0].steps[0]: `scale` needs `replicas`"],
        ),
        (
            "{delete: {kind: Pod, name: a}, expect: Alowed}",
            vec![
                "a.yaml:7: spec.cases[0].steps[0].expect: `Alowed` is not one of `Allowed`, `Denied`, `Warned`, `Undecided` (did you mean `Allowed`?)",
            ],
        ),
        (
            "{delete: {kind: Pod, name: a, preconditions: {uid: u}}, expect: Denied}",
            vec![
                "a.yaml:7: spec.cases[0].steps[0].delete.preconditions: unknown field `preconditions` (`preconditions` belongs under `spec.cases[].steps[]`)",
            ],
        ),
    ] {
        assert_eq!(suite(step), expected, "{step}");
    }
}

/// What is said of a text, each with its place and code.
fn placed(yaml: &str) -> Vec<String> {
    let (specs, mut errors) = suture_specs::spec::parse_what_is_right(yaml, "a.yaml");
    for spec in specs {
        if let Spec::Invariant(invariant) = spec {
            errors.extend(compile_invariant(&invariant, &Library::default()).err().into_iter().flatten());
        }
    }
    errors.retain(|error| !error.may_follow);
    let help = |e: &suture_specs::spec::SpecError| e.help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default();
    errors.iter().map(|e| format!("{} {e}{}", e.code, help(e))).collect()
}

#[test]
fn an_error_has_its_place_in_the_real_file_and_hides_no_other() {
    let yaml = "\
kind: Invariant
metadata: {name: one}
spec:
  forEach: {var: p, kind: Pod}
  require:
  - expression: >-
      p.liveIn(now) &&
        p.at(now).redy()
  - {expression: \"p.live() and p.ready()\"}
  - expression: 'p.metadata.name = ''x'''
  - expression: |
      (p.ready()
---
kind: Exemption
metadata: {name: two
---
kind: Invariant
metadata: {name: three}
forEach: {var: p, kind: Pod}
---
kind: Invariant
metadata: {name: four}
spec:
  var: p
  hold: Durring
  require: [{expression: 'true'}]
";
    assert_eq!(
        placed(yaml),
        [
            "E0001 a.yaml:15:11: unclosed bracket '{'",
            "E0003 a.yaml:19:1: forEach: unknown field `forEach` (`forEach` belongs under `spec`)",
            "E0005 a.yaml:25:3: spec.hold: `Durring` is not one of `During`, `AtOnce`, `After` (did you mean `During`?)",
            "E0003 a.yaml:24:3: spec.var: unknown field `var` (`var` belongs under `spec.forEach`)",
            "E0103 a.yaml:8:19: spec.require[0].expression: there is no method `redy` (did you mean `ready`?)",
            "E0101 a.yaml:9:28: spec.require[1].expression: unexpected `and` (write `&&`, not `and`)",
            "E0101 a.yaml:10:34: spec.require[2].expression: unexpected `=` (write `==`, not `=`)",
            "E0101 a.yaml:12:17: spec.require[3].expression: unexpected end of the expression (`(` at character 1 is not closed)",
        ]
    );
}
