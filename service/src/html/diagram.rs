//! The picture of a counterexample: its objects in rows, from owners down to nodes and volumes, with what they are to each
//! other. Both pictures of a pair have each object in the same place. What is lost is struck through, dashed and said in
//! words, so that nobody needs colours.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use suture_checker::decision::Counterexample;
use suture_checker::involved::{InvolvedEdge, InvolvedObject, Relation};
use suture_model::kinds::{KindTraits, Makes, Role};

use crate::output::visible as shown;

/// More objects are in the table only.
const DRAWN_MAX: usize = 18;
/// With more edges than these, what each of them is stands in the table only.
const LABELLED_MAX: usize = 16;
/// Objects beside each other.
const COLUMNS: usize = 3;
/// A longer name is cut in its middle: what tells two objects apart is at the end.
const NAME_MAX: usize = 21;
const BOX_WIDTH: i32 = 166;
const BOX_HEIGHT: i32 = 54;
const GAP_X: i32 = 16;
const GAP_Y: i32 = 40;
const MARGIN: i32 = 8;

/// Which of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The cluster before the change.
    Before,
    /// The violating future.
    After,
}

/// What became of an object, or of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is as it was.
    Same,
    /// It is there in another state.
    Other,
    /// It was there and is not, or is about to go.
    Lost,
    /// It was not there.
    New,
}

impl Fate {
    /// What became of an object.
    pub fn of(object: &InvolvedObject) -> Self {
        match (&object.before, &object.after) {
            _ if object.goes => Self::Lost,
            (Some(_), None) => Self::Lost,
            (None, _) => Self::New,
            (Some(before), Some(after)) if before != after => Self::Other,
            (Some(_), Some(_)) => Self::Same,
        }
    }

    /// What became of an edge.
    pub fn of_edge(edge: &InvolvedEdge) -> Self {
        match (edge.before, edge.after) {
            (true, false) => Self::Lost,
            (false, true) => Self::New,
            (true, true) | (false, false) => Self::Same,
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Other => "worse",
            Self::Lost => "lost",
            Self::New => "new",
        }
    }
}

/// Objects in their places.
pub struct Diagram<'c> {
    counterexample: &'c Counterexample,
    instance: &'c str,
    /// The left upper corner of each.
    places: BTreeMap<&'c str, (i32, i32)>,
    width: i32,
    height: i32,
    /// Tells the pictures of a page apart.
    number: usize,
}

impl<'c> Diagram<'c> {
    /// The picture of a counterexample about an instance, the `number`th of its page; none without objects.
    pub fn of(counterexample: &'c Counterexample, instance: &'c str, number: usize) -> Option<Self> {
        let mut rows: BTreeMap<u8, Vec<&str>> = BTreeMap::new();
        for object in counterexample.objects.iter().take(DRAWN_MAX) {
            rows.entry(row(kind(&object.name))).or_default().push(&object.name);
        }
        let lines: Vec<&[&str]> = rows.values().flat_map(|row| row.chunks(COLUMNS)).collect();
        let columns = i32::try_from(lines.iter().map(|line| line.len()).max()?.max(2)).ok()?;
        let across = |count: i32| count * BOX_WIDTH + (count - 1) * GAP_X;
        let width = across(columns) + 2 * MARGIN;
        let mut places = BTreeMap::new();
        let mut y = MARGIN;
        for line in &lines {
            let mut x = (width - across(i32::try_from(line.len()).ok()?)) / 2;
            for name in *line {
                places.insert(*name, (x, y));
                x += BOX_WIDTH + GAP_X;
            }
            y += BOX_HEIGHT + GAP_Y;
        }
        Some(Self { counterexample, instance, places, width, height: y - GAP_Y + MARGIN, number })
    }

    /// How many objects are left out of it.
    pub fn left_out(&self) -> usize {
        self.counterexample.objects.len().saturating_sub(self.places.len())
    }

    /// One of the pair.
    pub fn svg(&self, side: Side) -> Markup {
        let Self { counterexample, places, width, height, number, .. } = self;
        let (id, title) = match side {
            Side::Before => (format!("before-{number}"), "The objects involved, before the change"),
            Side::After => (format!("after-{number}"), "The objects involved, in the future that breaks it"),
        };
        let drawn = |object: &&InvolvedObject| {
            places.contains_key(object.name.as_str()) && (side == Side::After || object.before.is_some())
        };
        html! {
            svg viewBox=(format!("0 0 {width} {height}")) role="img" aria-labelledby=(format!("{id}-title {id}-text")) {
                title id=(format!("{id}-title")) { (title) }
                desc id=(format!("{id}-text")) { (self.in_words(side)) }
                defs {
                    marker id=(format!("{id}-head")) viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
                        path.head d="M0,0 L8,4 L0,8 z" {}
                    }
                }
                @for edge in self.edges(side) { (self.line(edge, side, &id)) }
                @for object in counterexample.objects.iter().filter(drawn) { (self.boxed(object, side)) }
                @if self.is_labelled() { @for edge in self.edges(side) { (self.label(edge, side)) } }
            }
        }
    }

    /// The edges of a picture: what is lost stays visible in the later one.
    fn edges(&self, side: Side) -> impl Iterator<Item = &'c InvolvedEdge> {
        self.counterexample.edges.iter().filter(move |edge| {
            let is_there = edge.before || (side == Side::After && edge.after);
            is_there && self.places.contains_key(edge.from.as_str()) && self.places.contains_key(edge.to.as_str())
        })
    }

    fn is_labelled(&self) -> bool {
        self.edges(Side::After).count() <= LABELLED_MAX
    }

    /// Where an edge begins and ends: at the sides of the boxes that face each other.
    fn ends(&self, edge: &InvolvedEdge) -> Option<[i32; 4]> {
        let (from, to) = (self.places.get(edge.from.as_str())?, self.places.get(edge.to.as_str())?);
        let middle = |place: &(i32, i32)| place.0 + BOX_WIDTH / 2;
        Some(match from.1.cmp(&to.1) {
            std::cmp::Ordering::Less => [middle(from), from.1 + BOX_HEIGHT, middle(to), to.1],
            std::cmp::Ordering::Greater => [middle(from), from.1, middle(to), to.1 + BOX_HEIGHT],
            std::cmp::Ordering::Equal if from.0 < to.0 => {
                [from.0 + BOX_WIDTH, from.1 + BOX_HEIGHT / 2, to.0, to.1 + BOX_HEIGHT / 2]
            }
            std::cmp::Ordering::Equal => [from.0, from.1 + BOX_HEIGHT / 2, to.0 + BOX_WIDTH, to.1 + BOX_HEIGHT / 2],
        })
    }

    fn line(&self, edge: &InvolvedEdge, side: Side, id: &str) -> Markup {
        let Some([x1, y1, x2, y2]) = self.ends(edge) else { return html! {} };
        let bend = (y2 - y1) / 2;
        let path = match y1 == y2 {
            true => format!("M{x1},{y1} L{x2},{y2}"),
            false => format!("M{x1},{y1} C{x1},{} {x2},{} {x2},{y2}", y1 + bend, y2 - bend),
        };
        html! {
            path class=(format!("edge {}", fate_on(side, Fate::of_edge(edge)).class())) d=(path)
                marker-end=(format!("url(#{id}-head)")) {
                title { (shown(&edge_in_words(edge, side))) }
            }
        }
    }

    /// What an edge is, in a gap between boxes.
    fn label(&self, edge: &InvolvedEdge, side: Side) -> Markup {
        let Some([x1, y1, x2, y2]) = self.ends(edge) else { return html! {} };
        let fate = fate_on(side, Fate::of_edge(edge));
        // between two rows in the middle; what comes from further up is read where it arrives, beside no box
        let (x, y) = match (y2 - y1).abs() <= GAP_Y {
            true => ((x1 + x2) / 2, (y1 + y2) / 2 + 3),
            false => (x2, y2 - 9),
        };
        let text = match fate {
            Fate::Lost => format!("✕ {}", edge.relation.verb()),
            Fate::New => format!("+ {}", edge.relation.verb()),
            Fate::Same | Fate::Other => edge.relation.verb().to_owned(),
        };
        html! { text class=(format!("label {}", fate.class())) x=(x) y=(y) text-anchor="middle" aria-hidden="true" { (text) } }
    }

    fn boxed(&self, object: &InvolvedObject, side: Side) -> Markup {
        let Some((x, y)) = self.places.get(object.name.as_str()).copied() else { return html! {} };
        let fate = fate_on(side, Fate::of(object));
        let state = state_on(object, side);
        let subject = if object.name == self.instance { " subject" } else { "" };
        let name = object.name.rsplit('/').next().unwrap_or_default();
        html! {
            g class=(format!("{}{subject}", fate.class())) {
                title { (shown(&object.name)) ": " (shown(&state)) }
                rect.box x=(x) y=(y) width=(BOX_WIDTH) height=(BOX_HEIGHT) rx="5" {}
                text.kind x=(x + 9) y=(y + 15) { (shown(&cut(kind(&object.name)))) }
                text.name x=(x + 9) y=(y + 31) { (shown(&cut(name))) }
                text.state x=(x + 9) y=(y + 46) { (shown(&cut(&state))) }
            }
        }
    }

    /// The picture for who does not see it.
    fn in_words(&self, side: Side) -> String {
        let objects = self.counterexample.objects.iter().filter(|object| {
            self.places.contains_key(object.name.as_str()) && (side == Side::After || object.before.is_some())
        });
        let objects: Vec<String> =
            objects.map(|object| format!("{}: {}", object.name, state_on(object, side))).collect();
        let edges: Vec<String> = self.edges(side).map(|edge| edge_in_words(edge, side)).collect();
        shown(&format!("{}. {}.", objects.join("; "), edges.join("; ")))
    }
}

/// What a picture says of a fate: in the earlier one nothing has happened yet.
fn fate_on(side: Side, fate: Fate) -> Fate {
    if side == Side::Before { Fate::Same } else { fate }
}

/// The state of an object, and in the later picture what became of it.
fn state_on(object: &InvolvedObject, side: Side) -> String {
    let said = |state: &Option<String>| state.clone().filter(|state| !state.is_empty());
    match (side, Fate::of(object)) {
        (Side::Before, _) => said(&object.before).unwrap_or_else(|| "there".to_owned()),
        (Side::After, Fate::Lost) if object.after.is_none() => "✕ gone".to_owned(),
        (Side::After, Fate::Lost) => "✕ goes".to_owned(),
        (Side::After, Fate::New) => match said(&object.after) {
            Some(state) => format!("+ new, {state}"),
            None => "+ new".to_owned(),
        },
        (Side::After, Fate::Other) => format!("! {}", said(&object.after).unwrap_or_else(|| "changed".to_owned())),
        (Side::After, Fate::Same) => said(&object.after).unwrap_or_else(|| "as before".to_owned()),
    }
}

fn edge_in_words(edge: &InvolvedEdge, side: Side) -> String {
    let InvolvedEdge { from, to, relation, .. } = edge;
    let verb = relation.verb();
    match fate_on(side, Fate::of_edge(edge)) {
        Fate::Lost => format!("{from} {verb} {to} no more"),
        Fate::New => format!("{from} {verb} {to} from now on"),
        Fate::Same | Fate::Other => format!("{from} {verb} {to}"),
    }
}

/// The objects and edges as tables: what the pictures show, and what they leave out.
pub fn tables(counterexample: &Counterexample) -> Markup {
    let said = |state: &Option<String>| match state {
        Some(state) if state.is_empty() => "there".to_owned(),
        Some(state) => state.clone(),
        None => "does not exist".to_owned(),
    };
    let became = |object: &InvolvedObject| match Fate::of(object) {
        Fate::Lost if object.after.is_none() => "✕ gone".to_owned(),
        Fate::Lost => format!("✕ goes ({})", said(&object.after)),
        Fate::New => format!("+ new ({})", said(&object.after)),
        Fate::Other => format!("! {}", said(&object.after)),
        Fate::Same => said(&object.after),
    };
    let edge = |edge: &InvolvedEdge| match Fate::of_edge(edge) {
        Fate::Lost => "✕ lost",
        Fate::New => "+ new",
        Fate::Same | Fate::Other => "kept",
    };
    html! {
        table {
            caption { "The objects, before the change and in the future that breaks it" }
            thead { tr { th scope="col" { "Object" } th scope="col" { "Before" } th scope="col" { "After" } } }
            tbody {
                @for object in &counterexample.objects {
                    tr class=(Fate::of(object).class()) {
                        th scope="row" { (shown(&object.name)) }
                        td { (shown(&said(&object.before))) }
                        td { (shown(&became(object))) }
                    }
                }
            }
        }
        @if !counterexample.edges.is_empty() {
            table {
                caption { "What they are to each other" }
                thead { tr { th scope="col" { "Object" } th scope="col" { "Relation" } th scope="col" { "To" } th scope="col" { "After" } } }
                tbody {
                    @for relation in &counterexample.edges {
                        tr class=(Fate::of_edge(relation).class()) {
                            th scope="row" { (shown(&relation.from)) }
                            td { (relation.relation.verb()) }
                            td { (shown(&relation.to)) }
                            td { (edge(relation)) }
                        }
                    }
                }
            }
        }
    }
}

/// Which relations a picture has, for its legend.
pub fn relations(counterexample: &Counterexample) -> BTreeSet<Relation> {
    counterexample.edges.iter().map(|edge| edge.relation).collect()
}

fn kind(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// In which row objects of a kind stand, from the top.
fn row(kind: &str) -> u8 {
    let Some(traits) = KindTraits::named(kind) else { return 0 };
    match traits.role {
        Role::Definition | Role::Rbac(_) => 0,
        Role::Route | Role::RouteClass | Role::Namespace => 1,
        Role::Controller(controller) if controller.makes == Makes::Pods => 3,
        Role::Controller(_) | Role::Selector | Role::Budget | Role::Scaler => 2,
        Role::Pod | Role::PodTemplate => 4,
        Role::Node | Role::Claim => 5,
        Role::Requirement(_) => 6,
        // what pods name
        Role::Other if traits.referred && traits.namespaced => 5,
        Role::Record | Role::Other => 0,
    }
}

fn cut(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= NAME_MAX {
        return text.to_owned();
    }
    let (head, tail) = (NAME_MAX / 2, NAME_MAX - 1 - NAME_MAX / 2);
    let part = |letters: &[char]| letters.iter().collect::<String>();
    format!(
        "{}…{}",
        part(letters.get(..head).unwrap_or_default()),
        part(letters.get(letters.len() - tail..).unwrap_or_default())
    )
}
