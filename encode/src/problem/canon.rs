//! Renames the variables of a problem by their role in it, so that isomorphic problems become equal.
//!
//! Roles are found by colour refinement: variables start with the colour of their range; in each round every occurrence adds a hash
//! of where it stands (what the term around it looks like in the present colours); variables with different sums get different
//! colours. Where variables remain that nothing tells apart, one of them gets a colour of its own, and refinement goes on.
//!
//! Soundness does not rest on hashes or on refinement: the key writes the renamed problem out in full, so equal keys mean isomorphic
//! problems. A hash collision or a tie between variables that only look alike can at worst give one problem two keys: a cache miss.

use std::collections::BTreeMap;

use suture_model::steps;

use crate::problem::{Label, Problem};
use crate::term::{Assignment, Bool, Int, Kind, Lin, TermError, VarId, Vars};

/// Refinement rounds before the remaining ties are broken by the caller's order: bounds the time to rounds × nodes. A problem takes
/// two or three rounds, and about two more for each pair of interchangeable variables.
const ROUNDS_MAX: usize = 64;

/// First byte of every key; changes whenever the writing does.
const KEY_FORMAT: u8 = 1;

/// A problem renamed by roles, and how to get back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canon {
    /// The renamed problem: variables without names, only those that occur; one assertion per label, sorted, labelled by place.
    pub problem: Problem,
    /// The renamed problem, written out. Equal keys mean isomorphic problems.
    pub key: Vec<u8>,
    /// For each variable of the renamed problem, the original one.
    pub vars: Vec<VarId>,
    /// For each label of the renamed problem, the original one.
    pub labels: Vec<Label>,
}

impl Canon {
    /// Translates an assignment of the renamed problem; what does not occur in any condition gets its least value.
    pub fn restore(&self, original: &Problem, assignment: &Assignment) -> Result<Assignment, TermError> {
        let mut restored = original.vars.all_lo();
        for (var, original) in (0..).map(VarId).zip(&self.vars) {
            restored.set(*original, assignment.get(var)?)?;
        }
        Ok(restored)
    }

    /// Translates an assignment of the original problem.
    pub fn translate(&self, assignment: &Assignment) -> Result<Assignment, TermError> {
        self.vars.iter().map(|original| assignment.get(*original)).collect::<Result<_, _>>().map(Assignment)
    }

    /// Translates a core of the renamed problem; sorted.
    pub fn restore_core(&self, core: &[Label]) -> Vec<Label> {
        let mut restored: Vec<_> = core.iter().filter_map(|label| self.labels.get(label.0 as usize).copied()).collect();
        restored.sort_unstable();
        restored
    }
}

impl Problem {
    /// The form that isomorphic problems share: same conditions, other variables, labels, names and order. Its `key` is what a cache
    /// of verdicts is keyed by.
    pub fn canonical(&self) -> Result<Canon, TermError> {
        self.check()?;
        canonical(self)
    }
}

fn canonical(problem: &Problem) -> Result<Canon, TermError> {
    let mut by_label: BTreeMap<Label, Vec<Bool>> = BTreeMap::new();
    for (label, condition) in &problem.assertions {
        by_label.entry(*label).or_default().push(condition.clone());
    }
    let joined = by_label.into_iter().map(|(label, conditions)| (label, Bool::and(conditions)));
    let assertions: Vec<(Label, Bool)> = joined.filter(|(_, condition)| !condition.is_true()).collect();

    let vars = ranked(&assertions, problem)?;
    let places: BTreeMap<VarId, VarId> = vars.iter().copied().zip((0..).map(VarId)).collect();
    let rename = |var: VarId| places.get(&var).copied().unwrap_or(var);

    let mut table = Vars::new();
    for var in &vars {
        let info = problem.vars.info(*var)?;
        table.fresh(info.lo, info.hi, "")?;
    }
    let mut renamed: Vec<(Bool, Label)> = assertions.iter().map(|(label, c)| (c.rename(&rename), *label)).collect();
    renamed.sort();
    let labels = renamed.iter().map(|(_, label)| *label).collect();
    let assertions = (0..).map(Label).zip(renamed).map(|(label, (condition, _))| (label, condition)).collect();
    let problem = Problem { vars: table, assertions, goal: problem.goal.rename(&rename) };
    Ok(Canon { key: written(&problem), problem, vars, labels })
}

/// The variables that occur, ordered by role.
fn ranked(assertions: &[(Label, Bool)], problem: &Problem) -> Result<Vec<VarId>, TermError> {
    let mut flat = Flat::default();
    for (_, condition) in assertions {
        let root = flat.add_bool(condition);
        flat.roots.push((root, Tag::Assertion as u64));
    }
    let root = flat.add_bool(&problem.goal);
    flat.roots.push((root, Tag::Goal as u64));

    // ordered by the caller's numbers, so that a tie that must be broken is broken the same way each time
    let vars: Vec<VarId> = flat.places.keys().copied().collect();
    let places: Vec<usize> = flat.places.values().copied().collect();
    let mut ranges = Vec::with_capacity(vars.len());
    for var in &vars {
        let info = problem.vars.info(*var)?;
        ranges.push((info.lo, info.hi));
    }
    // colours by place of first occurrence in `flat`
    let mut colors = vec![0_u64; vars.len()];
    let mut classes = recolor(&mut colors, &places, &ranges);
    for round in 0..ROUNDS_MAX {
        if classes == vars.len() {
            break;
        }
        steps::count_items(flat.nodes.len());
        steps::check()?;
        let signatures = flat.signatures(&colors);
        let keyed: Vec<(u64, u64)> =
            places.iter().map(|place| (at(&colors, *place), at(&signatures, *place))).collect();
        let refined = recolor(&mut colors, &places, &keyed);
        if refined == classes || round + 1 == ROUNDS_MAX {
            break_tie(&mut colors, &places, round + 1 == ROUNDS_MAX);
        }
        classes = colors.iter().collect::<std::collections::BTreeSet<_>>().len();
    }
    let mut order: Vec<(u64, VarId)> = places.iter().map(|place| at(&colors, *place)).zip(vars).collect();
    order.sort_unstable();
    Ok(order.into_iter().map(|(_, var)| var).collect())
}

/// Colours equal keys equally, in the order of the keys, leaving gaps for [`break_tie`]. Returns the number of colours.
fn recolor<K: Ord + Clone>(colors: &mut [u64], places: &[usize], keys: &[K]) -> usize {
    let ranks: BTreeMap<K, u64> = keys.iter().cloned().map(|key| (key, 0)).collect();
    let ranks: BTreeMap<K, u64> = ranks.into_keys().zip((1..).map(|rank| rank * 2)).collect();
    for (place, key) in places.iter().zip(keys) {
        if let (Some(color), Some(rank)) = (colors.get_mut(*place), ranks.get(key)) {
            *color = *rank;
        }
    }
    ranks.len()
}

/// Gives the first variable of the least shared colour a colour of its own; all variables, if refinement has gone on for too long.
fn break_tie(colors: &mut [u64], places: &[usize], all: bool) {
    if all {
        let keys: Vec<(u64, usize)> = places.iter().map(|place| at(colors, *place)).zip(0..).collect();
        recolor(colors, places, &keys);
        return;
    }
    let mut members: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for place in places {
        members.entry(at(colors, *place)).or_default().push(*place);
    }
    let shared = members.into_values().find(|members| members.len() > 1);
    if let Some(color) = shared.and_then(|members| members.first().copied()).and_then(|first| colors.get_mut(first)) {
        *color -= 1;
    }
}

fn at(values: &[u64], place: usize) -> u64 {
    values.get(place).copied().unwrap_or_default()
}

/// All terms as one list of nodes, children before parents. The children of every node are an unordered collection.
#[derive(Default)]
struct Flat {
    nodes: Vec<FlatNode>,
    /// With the role of the root.
    roots: Vec<(usize, u64)>,
    /// The number that a variable has here, by first occurrence.
    places: BTreeMap<VarId, usize>,
}

struct FlatNode {
    /// What distinguishes nodes besides their variables and children.
    seed: u64,
    terms: Vec<(usize, u64)>,
    children: Vec<usize>,
}

enum Tag {
    True = 1,
    False,
    Le,
    Case,
    Not,
    And,
    Or,
    Assertion,
    Goal,
}

impl Flat {
    fn add_bool(&mut self, condition: &Bool) -> usize {
        match condition.kind() {
            Kind::True => self.add(Tag::True, None, Vec::new()),
            Kind::False => self.add(Tag::False, None, Vec::new()),
            Kind::Le(term) => self.add_le(term),
            Kind::Not(inner) => {
                let inner = self.add_bool(inner);
                self.add(Tag::Not, None, vec![inner])
            }
            Kind::And(inner) => {
                let children = inner.iter().map(|condition| self.add_bool(condition)).collect();
                self.add(Tag::And, None, children)
            }
            Kind::Or(inner) => {
                let children = inner.iter().map(|condition| self.add_bool(condition)).collect();
                self.add(Tag::Or, None, children)
            }
        }
    }

    fn add_le(&mut self, term: &Int) -> usize {
        let mut children = Vec::with_capacity(term.cases().len());
        for (guard, value) in term.cases() {
            let guard = self.add_bool(guard);
            children.push(self.add(Tag::Case, Some(value), vec![guard]));
        }
        self.add(Tag::Le, Some(term.lin()), children)
    }

    fn add(&mut self, tag: Tag, lin: Option<&Lin>, children: Vec<usize>) -> usize {
        let mut terms = Vec::new();
        for (var, coefficient) in lin.map(Lin::terms).unwrap_or_default() {
            let next = self.places.len();
            let place = *self.places.entry(*var).or_insert(next);
            terms.push((place, coefficient.cast_unsigned()));
        }
        let seed = mix(tag as u64, lin.map(Lin::offset).unwrap_or_default().cast_unsigned());
        self.nodes.push(FlatNode { seed, terms, children });
        self.nodes.len() - 1
    }

    /// For each variable, the sum over its occurrences of a hash of where it stands.
    fn signatures(&self, colors: &[u64]) -> Vec<u64> {
        let mut hashes: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let terms = node.terms.iter().map(|(place, coefficient)| mix(*coefficient, at(colors, *place)));
            let terms = terms.fold(0, u64::wrapping_add);
            let children = node.children.iter().map(|child| mix(0, at(&hashes, *child))).fold(0, u64::wrapping_add);
            hashes.push(mix(mix(node.seed, terms), children));
        }
        let mut contexts = vec![0_u64; self.nodes.len()];
        for (root, role) in &self.roots {
            if let Some(context) = contexts.get_mut(*root) {
                *context = *role;
            }
        }
        let mut signatures = vec![0_u64; colors.len()];
        for (place, node) in self.nodes.iter().enumerate().rev() {
            let here = mix(at(&contexts, place), at(&hashes, place));
            for child in &node.children {
                if let Some(context) = contexts.get_mut(*child) {
                    *context = here;
                }
            }
            for (var, coefficient) in &node.terms {
                if let Some(signature) = signatures.get_mut(*var) {
                    *signature = signature.wrapping_add(mix(here, *coefficient));
                }
            }
        }
        signatures
    }
}

/// Mixes two words into one (the finaliser of splitmix64 over both); the same on every machine and in every release.
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b ^ 0xd1b5_4a32_d192_ed03);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The problem in bytes: every list is preceded by its length, every number is a variable-length integer.
fn written(problem: &Problem) -> Vec<u8> {
    let mut out = vec![KEY_FORMAT];
    write_len(&mut out, problem.vars.len());
    for (_, info) in problem.vars.iter() {
        write_signed(&mut out, info.lo);
        write_signed(&mut out, info.hi);
    }
    write_len(&mut out, problem.assertions.len());
    problem.assertions.iter().for_each(|(_, condition)| write_bool(&mut out, condition));
    write_bool(&mut out, &problem.goal);
    out
}

fn write_bool(out: &mut Vec<u8>, condition: &Bool) {
    let mut list = |tag: Tag, inner: &[Bool]| {
        out.push(tag as u8);
        write_len(out, inner.len());
        inner.iter().for_each(|condition| write_bool(out, condition));
    };
    match condition.kind() {
        Kind::True => out.push(Tag::True as u8),
        Kind::False => out.push(Tag::False as u8),
        Kind::Not(inner) => list(Tag::Not, std::slice::from_ref(inner)),
        Kind::And(inner) => list(Tag::And, inner),
        Kind::Or(inner) => list(Tag::Or, inner),
        Kind::Le(term) => {
            out.push(Tag::Le as u8);
            write_lin(out, term.lin());
            write_len(out, term.cases().len());
            for (guard, value) in term.cases() {
                write_bool(out, guard);
                write_lin(out, value);
            }
        }
    }
}

fn write_lin(out: &mut Vec<u8>, lin: &Lin) {
    write_len(out, lin.terms().len());
    for (var, coefficient) in lin.terms() {
        write_unsigned(out, var.0.into());
        write_signed(out, *coefficient);
    }
    write_signed(out, lin.offset());
}

fn write_len(out: &mut Vec<u8>, len: usize) {
    write_unsigned(out, len as u64);
}

/// Zigzag: small magnitudes stay short.
fn write_signed(out: &mut Vec<u8>, value: i64) {
    write_unsigned(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

fn write_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
