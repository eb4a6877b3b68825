//! What a decision costs against the length of each list that a client can make long: no more than its length, for each
//! template, and few enough steps for all of them together.
//!
//! `--nocapture` prints the time and the steps by template, list and length.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test may stop where it fails")]

use std::sync::Arc;

mod lists;

use lists::{Long, cluster, object};
use serde_json::{Value, json};
use suture_checker::decision::{Decision, Finding};
use suture_checker::engine::{Engine, Input, STEPS_WEBHOOK, Settings};
use suture_model::change::{Change, Request, User};
use suture_model::object::Object;
use suture_model::snapshot::Snapshot;
use suture_model::state::State;
use suture_model::value::Val;
use suture_service::input::Source;
use suture_service::policy::{Documents, Policy};
use suture_specs::compile::{CompiledInvariant, compile_invariant};
use suture_specs::library::Library;
use suture_specs::spec::{Profile, Spec, parse_specs};

/// The lengths that are tried with all templates at once.
const LENGTHS: [usize; 3] = [100, 1_000, 8_000];

/// The lengths that are tried with each template, each ten times the one before; the last one makes objects of about the size that the API server
/// accepts. `SUTURE_COST_ITEMS` says another last one.
fn lengths() -> [usize; 3] {
    let most = std::env::var("SUTURE_COST_ITEMS").ok().and_then(|text| text.parse().ok()).unwrap_or(ITEMS);
    [most / 100, most / 10, most]
}

/// Items of the longest list when `SUTURE_COST_ITEMS` does not say.
const ITEMS: usize = 1_000;
/// What costs less in steps at the longest list says nothing about how it grows.
const STEPS_MIN: u64 = 20_000;
/// By what power of its length a list may cost: what is linear beside what every decision costs, with logarithms.
const POWER_MAX: f64 = 1.25;

/// What templates are told that judge nothing otherwise.
const TOLD: &str = "
{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: data-stays-resident},
  spec: {template: data-stays-resident, params: {zones: {eu: [z]}}}}
---
{apiVersion: suture.dev/v1alpha1, kind: Invariant, metadata: {name: tenant-lease-kept},
  spec: {template: tenant-lease-kept, params: {leases: {shop: {cpu: '100', memory: 100Gi}}}}}
";

/// Every shipped template as an invariant, and the adapters that are shipped.
fn policy() -> Policy {
    let told = Source { name: "told".to_owned(), text: TOLD.to_owned() };
    let mut documents = Documents::read(&[told]).expect("it parses");
    documents.add_profile(Some(Profile::Strict)).expect("it compiles");
    documents.compile().expect("it compiles")
}

fn engine(invariants: Vec<Arc<CompiledInvariant>>) -> Engine {
    Engine::new(invariants, Settings { steps: STEPS_WEBHOOK, ..Settings::default() }).expect("Z3 is new enough")
}

fn decide(engine: &mut Engine, snapshot: &Snapshot, value: &Value) -> Decision {
    let (state, val) = (State::new(snapshot), Val::from(value));
    let key = Object::from_val(&val).expect("it is an object").key;
    let request = match state.get(&key) {
        Some(_) => Request::update(User::admin(), &state, &val, ""),
        None => Request::create(User::admin(), &state, &val),
    };
    let change = Change::from(request.expect("it can be asked"));
    engine.decide(&Input { snapshot, in_flight: &[], change: &change, time: None, exemptions: &[] })
}

#[test]
fn no_list_makes_a_decision_cost_more_than_it_may() {
    let policy = policy();
    let snapshot = cluster(policy.adapters.clone());
    let mut engine = engine(policy.invariants);
    println!("{:28}{}", "steps of a decision", LENGTHS.map(|length| format!("{length:>14}")).concat());
    for Long { list, of } in lists::all() {
        let costs = LENGTHS.map(|length| {
            let decision = decide(&mut engine, &snapshot, &of(length));
            let cost = decision.effort.steps;
            assert!(cost <= STEPS_WEBHOOK + STEPS_WEBHOOK / 10, "{list} of {length}: {cost} steps");
            assert_eq!(overrun(&decision), None, "{list} of {length}");
            cost
        });
        println!("{list:28}{}", costs.map(|cost| format!("{cost:>14}")).concat());
    }
}

/// What of a decision took too long, if anything did.
fn overrun(decision: &Decision) -> Option<String> {
    let took = |why: &&str| why.starts_with("it takes too long");
    decision.verdicts.iter().filter(|verdict| verdict.outcome == Finding::Undecided).find_map(|verdict| {
        let why = verdict.reason.as_deref().filter(took)?;
        Some(format!("{}: {why}", verdict.invariant))
    })
}

/// What one template costs for one list, by length.
struct Row {
    template: String,
    list: &'static str,
    steps: [u64; 3],
    micros: [u128; 3],
    overran: bool,
}

impl Row {
    fn of(template: &CompiledInvariant, engine: &mut Engine, snapshot: &Snapshot, long: &Long) -> Option<Self> {
        let mut row = Self {
            template: template.name.to_string(),
            list: long.list,
            steps: [0; 3],
            micros: [0; 3],
            overran: false,
        };
        let mut reached = false;
        for (at, length) in lengths().into_iter().enumerate() {
            let value = (long.of)(length);
            // the first one of a kind warms up what is kept
            let decisions = [(); 2].map(|()| {
                engine.forget();
                timed(|| decide(engine, snapshot, &value))
            });
            let [_, (decision, micros)] = decisions;
            (row.steps[at], row.micros[at]) = (decision.effort.steps, micros);
            row.overran |= overrun(&decision).is_some();
            reached |= decision.effort.instances > 0;
        }
        reached.then_some(row)
    }

    /// By which power of the length it grows at the end.
    fn powers(&self) -> [f64; 2] {
        let power = |few: f64, many: f64| (many.max(1.0) / few.max(1.0)).log10();
        let ([_, few, many], [_, short, long]) = (self.steps, self.micros);
        [power(few as f64, many as f64), power(short as f64, long as f64)]
    }

    fn print(&self) {
        let [steps, time] = self.powers();
        let micros = self.micros.map(|micros| format!("{:>10.1}", micros as f64 / 1_000.0)).concat();
        println!("{:28}{:28}{micros}{time:>8.2}{:>12}{steps:>8.2}", self.template, self.list, self.steps[2]);
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, u128) {
    #[expect(clippy::disallowed_methods, reason = "it prints how long it takes")]
    let clock = std::time::Instant::now();
    let done = work();
    (done, clock.elapsed().as_micros())
}

#[test]
fn each_template_costs_no_more_than_the_length_of_each_list() {
    let policy = policy();
    let snapshot = cluster(policy.adapters.clone());
    let milliseconds = lengths().map(|length| format!("{:>10}", format!("ms/{length}"))).concat();
    println!("{:28}{:28}{milliseconds}{:>8}{:>12}{:>8}", "template", "list", "power", "steps", "power");
    let (mut unreached, mut wrong) = (Vec::new(), Vec::new());
    for template in policy.invariants {
        let mut engine = engine(vec![template.clone()]);
        let rows: Vec<Row> =
            lists::all().iter().filter_map(|long| Row::of(&template, &mut engine, &snapshot, long)).collect();
        rows.iter().for_each(Row::print);
        if rows.is_empty() {
            unreached.push(template.name.to_string());
        }
        wrong.extend(
            rows.into_iter().filter(|row| row.overran || (row.steps[2] > STEPS_MIN && row.powers()[0] > POWER_MAX)),
        );
    }
    assert!(unreached.is_empty(), "no list reaches {}", unreached.join(", "));
    println!("more than linear:");
    wrong.iter().for_each(Row::print);
    let told = |row: &Row| format!("{} by {}", row.template, row.list);
    assert!(wrong.is_empty(), "{}", wrong.iter().map(told).collect::<Vec<_>>().join("; "));
}

/// An invariant of ConfigMaps that asks this of each.
fn of_maps(name: &str, expression: &str) -> Arc<CompiledInvariant> {
    let text = format!(
        "apiVersion: suture.dev/v1alpha1\nkind: Invariant\nmetadata: {{name: {name}}}\nspec:\n  \
         forEach: {{var: m, kind: ConfigMap}}\n  require: [{{expression: \"{expression}\"}}]\n"
    );
    let specs = parse_specs(&text, name).expect("it parses");
    let [Spec::Invariant(invariant)] = specs.as_slice() else { unreachable!("{text}") };
    Arc::new(compile_invariant(invariant, &Library::shipped().expect("it compiles")).expect("it compiles"))
}

#[test]
fn no_invariant_makes_an_audit_cost_more_than_it_may() {
    let mut snapshot = Snapshot::default();
    for at in 0..120 {
        let map = object("v1", "ConfigMap", &format!("m{at}"), json!({"metadata": {"uid": format!("m{at}")}}));
        snapshot.insert(Object::from_val(&Val::from(&map)).expect("it is an object"));
    }
    snapshot.complete();
    let maps = "now.inNamespace('a', 'ConfigMap')";
    let nested =
        format!("{maps}.all(x, {maps}.all(y, {maps}.all(z, x.metadata.name + y.metadata.name != m.metadata.name)))");
    let invariants = vec![of_maps("nested", &nested), of_maps("plain", "m.at(now).metadata.name != ''")];
    let settings = Settings { steps: STEPS_WEBHOOK, ..Settings::default() };
    let decision = Engine::new(invariants, settings).expect("Z3 is new enough").audit(&snapshot, None);
    let [verdict] = decision.verdicts.as_slice() else { unreachable!("{:?}", decision.verdicts) };
    assert_eq!((&*verdict.invariant, verdict.outcome), ("nested", Finding::Undecided));
    let why = verdict.reason.as_deref().unwrap_or_default();
    assert!(why.starts_with("it takes too long"), "{why}");
    assert!(decision.proved >= 120, "the other one is audited: {}", decision.proved);
}
