//! OperatorGrants: where an operator may write, what it may take away within a time, and which invariants bind it.
//!
//! A grant is judged on the request itself and on what it takes along, not on futures: what controllers do of their own
//! accord is not its subjects' doing. Its verdicts bear the names `operator-in-scope` and `deletion-budget`, or that of
//! an Invariant that names the template of this name, and the instance `OperatorGrant/<name>`.
//!
//! What the webhook never sees is never judged: leases, events, and reviews of tokens and rights.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suture_checker::decision::{Counterexample, Exempted, Finding, StepReport, Verdict};
use suture_checker::involved::ViolatingFuture;
use suture_model::annotations::CONFIRM_DELETE;
use suture_model::change::{Change, Request, User};
use suture_model::kinds::Kind;
use suture_model::land::describe;
use suture_model::selector::Selector;
use suture_model::state::State;
use suture_model::value::{Str, Val};
use suture_specs::compile::CompiledInvariant;
use suture_specs::spec::{
    Action, Invariant, OperatorGrant, Origin, SpecError, SpentEntry, Subject, spent_in, spent_of,
};

mod budget;
mod grant;
mod history;
mod limit;
mod recorded;
mod scope;
mod spent;

pub use grant::GrantQuestion;
pub use history::{History, Spent, Taken};

use grant::Grant;

/// The template that stands for the scopes of all grants.
pub const SCOPE: &str = "operator-in-scope";
/// The template that stands for the budgets of all grants.
pub const BUDGET: &str = "deletion-budget";
/// The templates that are about grants: the language does not say them, this module does.
pub const TEMPLATES: [&str; 2] = [SCOPE, BUDGET];

/// So many objects, with the uids of the requests that took them, fit a status: about 300 bytes each, where etcd takes objects of
/// 1.5 MiB (`--max-request-bytes`).
pub const RECORDED_MAX: usize = 2_000;

/// Why nothing more of a grant is admitted: its status cannot hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {RECORDED_MAX} objects were taken away within its windows")]
pub struct TooMuchSpent;

/// The loaded grants.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    grants: Vec<Arc<Grant>>,
    rules: Vec<Rule>,
    /// What the status of each says that it has spent.
    recorded: History,
}

/// An Invariant that names one of [`TEMPLATES`].
#[derive(Clone, Debug)]
struct Rule {
    template: &'static str,
    name: Str,
    action: Option<Action>,
    subjects: Vec<Subject>,
}

/// What a grant says about a change.
#[derive(Clone, Debug)]
pub struct GrantVerdict {
    /// The name of the Invariant, or of the template.
    pub invariant: Str,
    /// The name of the grant.
    pub grant: Str,
    /// What becomes of the request.
    pub action: Action,
    /// What is wrong: refuted, or undecided for this reason.
    pub finding: Result<String, String>,
    /// What the requests do.
    pub steps: Vec<StepReport>,
}

/// The verdicts, and what is to be recorded should the change be admitted.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// The verdicts of grants that are not kept.
    pub verdicts: Vec<GrantVerdict>,
    /// The grants that are not kept and that an exemption lifts.
    pub exempted: Vec<Exempted>,
    /// What the change takes away.
    pub spent: Vec<Spent>,
}

impl Grants {
    /// Compiles grants, and the Invariants that name one of [`TEMPLATES`].
    ///
    /// # Errors
    /// All that is wrong with them.
    pub fn compile(grants: &[OperatorGrant], invariants: &[&Invariant]) -> Result<Self, Vec<SpecError>> {
        let mut errors = Vec::new();
        let mut compiled = Self::default();
        for grant in grants {
            let (limits, more) = limit::limits(grant);
            errors.extend(more);
            match spent_of(grant).and_then(|entries| read(&grant.name, &entries, &grant.origin)) {
                Ok(entries) => entries.into_iter().for_each(|(at, spent)| compiled.recorded.adopt(spent, at)),
                Err(more) => errors.extend(more),
            }
            if grant.spec.subjects.is_empty() {
                errors.push(SpecError::new(&grant.origin, "spec.subjects", "a grant without subjects binds nobody"));
            }
            let selector = grant.spec.invariants.as_ref().and_then(|i| i.selector.as_ref()).filter(|s| !s.is_null());
            compiled.grants.push(Arc::new(Grant {
                name: grant.name.clone(),
                spec: grant.spec.clone(),
                limits,
                selector: selector.map(Selector::from_label_selector).filter(|s| !s.is_empty()),
            }));
        }
        for invariant in invariants {
            match rule(invariant) {
                Ok(rule) => compiled.rules.extend(rule),
                Err(more) => errors.extend(more),
            }
        }
        if errors.is_empty() { Ok(compiled) } else { Err(errors) }
    }

    /// What their statuses say that they have spent: where a history begins.
    pub fn recorded(&self) -> &History {
        &self.recorded
    }

    /// What the status of a grant is to keep of a history: what a window still reaches. Nothing of a grant that is not loaded.
    ///
    /// # Errors
    /// When that is too much for a status.
    pub fn kept(&self, grant: &str, history: &History, now: i128) -> Result<Vec<SpentEntry>, TooMuchSpent> {
        let Some(grant) = self.grants.iter().find(|known| *known.name == *grant) else { return Ok(Vec::new()) };
        let window = grant.longest_window();
        let mut entries: Vec<(i128, &Spent)> =
            history.of_grant(&grant.name).filter(|(at, _)| now.saturating_sub(*at) < window).collect();
        entries.sort_by_key(|(at, _)| *at);
        let mut size: usize = entries.iter().map(|(_, spent)| recorded::size(spent)).sum();
        if size > RECORDED_MAX && self.actions_of(grant, BUDGET).into_values().any(|action| action == Action::Deny) {
            return Err(TooMuchSpent);
        }
        // nothing is refused for what only warns: it has long said so
        let mut entries = entries.into_iter().peekable();
        while let Some((_, spent)) = entries.peek().filter(|_| size > RECORDED_MAX) {
            size -= recorded::size(spent);
            entries.next();
        }
        Ok(entries.map(|(at, spent)| recorded::written(at, spent)).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.grants.is_empty()
    }

    /// The subjects of all grants.
    pub fn subjects(&self) -> impl Iterator<Item = &Subject> {
        self.grants.iter().flat_map(|grant| &grant.spec.subjects)
    }

    /// What becomes of a request that each of them refuses, by their names.
    pub fn actions(&self) -> impl Iterator<Item = (&Str, Action)> {
        self.grants.iter().map(|grant| (&grant.name, grant.spec.action))
    }

    /// What the Invariants about all grants do instead, where they say so, by their names.
    pub fn overrides(&self) -> impl Iterator<Item = (&Str, Action)> {
        self.rules.iter().filter_map(|rule| Some((&rule.name, rule.action?)))
    }

    /// The kinds that budgets count and scopes look at.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        let counted = self.grants.iter().flat_map(|g| g.limits.iter().filter_map(|limit| limit.kind.resolve()));
        let owning = self.grants.iter().flat_map(|g| g.spec.scope.iter().flat_map(|s| s.owners.iter().flatten()));
        counted.chain(owning.map(|kind| Kind::new(&kind.group, &kind.kind))).collect()
    }

    /// Whether a budget counts disrupted pods: then it depends on what makes them.
    pub fn count_pods(&self) -> bool {
        self.grants.iter().any(|grant| grant.limits.iter().any(|limit| limit.percent.is_some()))
    }

    /// The invariants that do not bind the authors of a change: those that every grant about an author leaves out. One
    /// author that is bound binds them all.
    pub fn unbound(&self, change: &Change, invariants: &[Arc<CompiledInvariant>]) -> BTreeSet<Str> {
        if self.grants.iter().all(|grant| grant.selector.is_none()) {
            return BTreeSet::new();
        }
        let free = |invariant: &CompiledInvariant| {
            change.requests.iter().all(|request| {
                let mut about = self.grants.iter().filter(|grant| grant.covers(&request.user)).peekable();
                let granted = about.peek().is_some();
                granted && about.all(|g| g.selector.as_ref().is_some_and(|s| !s.matches(&invariant.labels)))
            })
        };
        invariants.iter().filter(|invariant| free(invariant)).map(|invariant| invariant.name.clone()).collect()
    }

    /// Judges a change: each of its requests by the grants of its author.
    pub fn judge(&self, asked: &GrantQuestion<'_>) -> Judged {
        let mut judged = Judged::default();
        let bound: Vec<&Arc<Grant>> =
            self.grants.iter().filter(|g| asked.change.requests.iter().any(|r| g.covers(&r.user))).collect();
        if bound.is_empty() {
            return judged;
        }
        for grant in &bound {
            let outside = scope::outside(grant, asked);
            if let Some((finding, request)) = outside {
                self.add(&mut judged, grant, asked, SCOPE, finding, vec![step(request)]);
            }
            let confirming = asked.change.requests.iter().filter(|r| grant.covers(&r.user) && confirms(r));
            if let Some(request) = confirming.into_iter().next().filter(|_| !grant.spec.confirm) {
                let text = format!(
                    "it confirms a deletion by {CONFIRM_DELETE}, which the grant does not say it may (`confirm: true`)"
                );
                self.add(&mut judged, grant, asked, SCOPE, Ok(text), vec![step(request)]);
            }
        }
        if bound.iter().any(|grant| !grant.limits.is_empty()) {
            self.judge_budgets(&bound, asked, &mut judged);
        }
        judged
    }

    fn judge_budgets(&self, bound: &[&Arc<Grant>], asked: &GrantQuestion<'_>, judged: &mut Judged) {
        let state = State::new(asked.snapshot);
        for grant in bound.iter().filter(|grant| !grant.limits.is_empty()) {
            let covers = |user: &User| grant.covers(user);
            let mut spent = Spent::of(&grant.name, asked, &covers);
            for limit in &grant.limits {
                if let Some(finding) = budget::exceeded(limit, grant, &spent, &state, asked) {
                    let steps = asked.change.requests.iter().filter(|r| covers(&r.user)).map(step).collect();
                    self.add(judged, grant, asked, BUDGET, finding, steps);
                }
            }
            // nothing else is ever asked for
            spent.taken.retain(|taken| grant.limits.iter().any(|limit| limit.counts(taken)));
            if grant.limits.iter().all(|limit| limit.percent.is_none()) {
                spent.scaled.clear();
            }
            if !spent.is_nothing() {
                judged.spent.push(spent);
            }
        }
    }

    /// The names under which a grant is judged by a template, and what becomes of a request that it refuses: each Invariant
    /// about this template, or the template itself.
    fn actions_of(&self, grant: &Grant, template: &'static str) -> BTreeMap<Str, Action> {
        let about = |rule: &&Rule| {
            rule.template == template
                && (rule.subjects.is_empty() || rule.subjects.iter().any(|s| grant.spec.subjects.contains(s)))
        };
        let named = self.rules.iter().filter(about);
        let mut named: BTreeMap<Str, Action> =
            named.map(|rule| (rule.name.clone(), rule.action.unwrap_or(grant.spec.action))).collect();
        if named.is_empty() {
            named.insert(template.into(), grant.spec.action);
        }
        named
    }

    /// Adds a verdict under the name of each Invariant about this template, or of the template itself; none where an
    /// exemption lifts it.
    fn add(
        &self,
        judged: &mut Judged,
        grant: &Grant,
        asked: &GrantQuestion<'_>,
        template: &'static str,
        finding: Result<String, String>,
        steps: Vec<StepReport>,
    ) {
        for (invariant, action) in self.actions_of(grant, template) {
            if let Some(exemption) = grant.exemption(&invariant, asked) {
                judged.exempted.push(Exempted::of(&invariant, &grant.instance(), exemption));
                continue;
            }
            let (finding, steps) = (finding.clone(), steps.clone());
            let verdict = GrantVerdict { invariant, grant: grant.name.clone(), action, finding, steps };
            judged.verdicts.push(verdict);
        }
    }
}

/// What the history is to take over of the entries of a status.
fn read(grant: &Str, entries: &[SpentEntry], origin: &Origin) -> Result<Vec<(i128, Spent)>, Vec<SpecError>> {
    let one = |(at, entry): (usize, &SpentEntry)| {
        let wrong = |error| vec![SpecError::new(origin, &format!("status.spent[{at}].at"), error)];
        recorded::read(grant, entry).map_err(wrong)
    };
    entries.iter().enumerate().map(one).collect()
}

/// What the history is to take over of the status of a grant.
///
/// # Errors
/// What is wrong with it.
pub fn spent_in_status(grant: &Str, status: &Val) -> Result<Vec<(i128, Spent)>, Vec<SpecError>> {
    let origin = Origin::named(&format!("OperatorGrant/{grant}"));
    read(grant, &spent_in(status, &origin)?, &origin)
}

/// The rule that an Invariant about grants is; `None` when it names another template.
fn rule(invariant: &Invariant) -> Result<Option<Rule>, Vec<SpecError>> {
    let spec = &invariant.spec;
    let Some(template) = TEMPLATES.iter().find(|name| spec.template.as_deref() == Some(**name)) else {
        return Ok(None);
    };
    let odd = [
        ("params", spec.params.as_ref().is_some_and(|params| params.entries().len() > 0)),
        ("forEach", spec.for_each.is_some()),
        ("hold", spec.hold.is_some()),
        ("under", spec.under.is_some()),
        ("let", spec.lets.is_some()),
        ("require", !spec.require.is_empty()),
        ("degree", spec.degree.is_some()),
        ("match", spec.matches.is_some()),
    ];
    if invariant.namespace.is_some() {
        let message = format!("`{template}` is about OperatorGrants, which lie in no namespace");
        return Err(vec![SpecError::new(&invariant.origin, "spec.template", message).helped("write an Invariant")]);
    }
    let errors: Vec<SpecError> = odd
        .iter()
        .filter(|(_, given)| *given)
        .map(|(field, _)| {
            let message = format!("`{template}` has no `{field}`: OperatorGrants say what it is about");
            SpecError::new(&invariant.origin, &format!("spec.{field}"), message)
        })
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let subjects = spec.subjects.clone();
    Ok(Some(Rule { template, name: invariant.name.clone(), action: spec.action, subjects }))
}

/// Whether a request writes a confirmation that was not there.
fn confirms(request: &Request) -> bool {
    let confirmation = |object: &Option<Val>| {
        object
            .as_ref()
            .and_then(|o| o.str_at(&["metadata", "annotations", CONFIRM_DELETE]))
            .filter(|uid| !uid.is_empty())
            .cloned()
    };
    let new = confirmation(&request.object);
    new.is_some() && new != confirmation(&request.old)
}

fn step(request: &Request) -> StepReport {
    StepReport { effect: describe(request), objects: vec![request.target.to_string()] }
}

impl From<GrantVerdict> for Verdict {
    fn from(verdict: GrantVerdict) -> Self {
        let GrantVerdict { invariant, grant, action, finding, steps } = verdict;
        let (outcome, text, reason) = match finding {
            Ok(text) => (Finding::Refuted, text, None),
            Err(why) => (Finding::Undecided, format!("OperatorGrant/{grant} could not be decided: {why}"), Some(why)),
        };
        let broken = (outcome == Finding::Refuted).then(|| text.clone());
        let mut message = vec![text];
        message.extend(steps.iter().take(STEPS_SHOWN_MAX).map(|step| format!("- {}", step.text())));
        Self {
            invariant: invariant.to_string(),
            instance: format!("OperatorGrant/{grant}"),
            outcome,
            action,
            reason,
            message: message.join("\n"),
            counterexample: broken.map(|broken| {
                let steps = steps.into_iter().map(Arc::new).collect();
                Arc::new(Counterexample::new(steps, broken, ViolatingFuture::default()))
            }),
            assumptions: Vec::new(),
            proved_against: Arc::default(),
            nearest_allowed: Vec::new(),
            awaits_landing: false,
            requests: Vec::new(),
        }
    }
}

/// How many steps a message shows: with its text it stays within ten lines.
const STEPS_SHOWN_MAX: usize = 8;

#[cfg(test)]
mod tests;
