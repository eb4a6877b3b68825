//! What a built-in kind is: its names, and what it means for pods, for references and for deletions.
//!
//! Each list of kinds is a question about a row. A question is a `match` over all roles: a new role has to answer it.

use Role::{
    Budget, Claim, Controller as Controls, Definition, Namespace, Node, Other, Pod, PodTemplate, Rbac, Record,
    Requirement as Requires, Route, RouteClass, Scaler, Selector,
};

/// What is known of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub struct KindTraits {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The kind, as in `kind:` of a manifest.
    pub kind: &'static str,
    /// The resource, as in a path of the API server.
    pub resource: &'static str,
    /// The short names that kubectl takes.
    pub short: &'static [&'static str],
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// Whether the language lists it under its resource, as in `before.pods`.
    pub listed: bool,
    /// Whether it may have a status. A rule for a subresource that does not exist asks for nothing.
    pub has_status: bool,
    /// When it is watched.
    pub watched: Watched,
    /// Whether its objects refer to others by name (`references.rs`), bindings of roles aside.
    pub refers: bool,
    /// Whether others refer to its objects by name, targets of autoscalers and of bindings aside.
    pub referred: bool,
    /// What goes with an object of it.
    pub takes_along: TakesAlong,
    /// What it is to pods and hosts.
    pub role: Role,
    /// The kinds that its controller removes itself, each with the service account that does.
    pub removes: &'static [(&'static str, &'static str)],
}

/// When a kind is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// For every decision: what it contains goes with it.
    Always,
    /// When an invariant or an effect reads it, or reads every kind.
    WhenRead,
    /// When it is named: its objects are written all the time, and are facts of nothing.
    WhenNamed,
}

/// What goes with an object, beside the dependents that name it as their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesAlong {
    /// Nothing else.
    Dependents,
    /// The objects of the namespace.
    Contents,
    /// The objects of the kind that it defines.
    Instances,
    /// The pods on the node.
    Pods,
    /// The claims that its retention policy gives up.
    Claims,
    /// The volume that is bound to the claim, if its reclaim policy says so.
    Volume,
    /// The Secrets with tokens of the account.
    Tokens,
}

/// What a kind is to pods and to hosts.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// Pods.
    Pod,
    /// Makes pods, itself or through others.
    Controller(&'static Controller),
    /// A template that nothing makes pods of.
    PodTemplate,
    /// Selects pods and does nothing to them.
    Selector,
    /// Selects pods and refuses their eviction.
    Budget,
    /// Sets the scale of a controller.
    Scaler,
    /// Pods run on it.
    Node,
    /// Objects live in it.
    Namespace,
    /// Defines a kind.
    Definition,
    /// Pods wait for it.
    Claim,
    /// Claims hosts.
    Route,
    /// Decides which class a route has, and with it what it claims.
    RouteClass,
    /// Decides what pods ask for, whether they are admitted, or on which nodes they may be.
    Requirement(Requirement),
    /// Grants rights.
    Rbac(RbacKind),
    /// Controllers write it for its owner, and about it.
    Record,
    /// None of these.
    Other,
}

/// What pods depend on by what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// A volume, and the nodes that reach it.
    Volume,
    /// When and how volumes are made, and on which nodes.
    StorageClass,
    /// Defaults and limits of what pods ask for.
    Limits,
    /// Limits of what a namespace asks for.
    Quota,
    /// The priority of pods.
    Priority,
    /// What a runtime adds to what pods ask for, and on which nodes it is.
    Runtime,
}

/// How rights are granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RbacKind {
    /// It says which rights.
    Role,
    /// It says who has those of a role.
    Binding,
}

/// What makes pods.
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    /// Where its objects keep the template of their pods.
    pub template: &'static [&'static str],
    /// What it makes.
    pub makes: Makes,
    /// What it adopts of those that it selects and nothing controls.
    pub adopts: Adopts,
    /// Whether `spec.replicas` says how many pods it wants, 1 if left out, and a subresource sets it.
    pub has_scale: bool,
    /// Whether it decides how many of its pods there are and which go; if not, each comes and goes by itself.
    pub decides: bool,
    /// Whether it replaces its pods when their template is another one.
    pub rolls_out: bool,
    /// Whether the names of its pods are made up, so that none comes back.
    pub generates_names: bool,
    /// Whether it releases a pod that it no longer selects, and makes another one under another name.
    pub replaces_released: bool,
    /// Whether its dependents stay where a deletion does not say (`DefaultGarbageCollectionPolicy`).
    pub orphans_by_default: bool,
}

/// What a controller makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Makes {
    /// Pods.
    Pods,
    /// ReplicaSets, which make the pods.
    ReplicaSets,
    /// Jobs, which make the pods.
    Jobs,
}

/// What a controller adopts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adopts {
    /// Nothing.
    Nothing,
    /// Pods.
    Pods,
    /// ReplicaSets.
    ReplicaSets,
}

impl KindTraits {
    /// What it does as a controller of pods, if it is one.
    pub const fn controller(&self) -> Option<&'static Controller> {
        match self.role {
            Controls(controller) => Some(controller),
            Pod | PodTemplate | Selector | Budget | Scaler | Node | Namespace | Definition | Claim | Route
            | RouteClass | Requires(_) | Rbac(_) | Record | Other => None,
        }
    }

    /// Where its objects keep a template of pods.
    pub const fn template_path(&self) -> Option<&'static [&'static str]> {
        match self.role {
            Controls(controller) => Some(controller.template),
            PodTemplate => Some(&["template"]),
            Pod | Selector | Budget | Scaler | Node | Namespace | Definition | Claim | Route | RouteClass
            | Requires(_) | Rbac(_) | Record | Other => None,
        }
    }

    /// Whether its objects are pods, or make some in the end.
    pub const fn runs_pods(&self) -> bool {
        match self.role {
            Pod | Controls(_) => true,
            PodTemplate | Selector | Budget | Scaler | Node | Namespace | Definition | Claim | Route | RouteClass
            | Requires(_) | Rbac(_) | Record | Other => false,
        }
    }

    /// Whether its objects decide which pods there are: those of a kind that was not read may.
    pub const fn decides_which_pods(&self) -> bool {
        match self.role {
            Pod | Controls(_) | Scaler => true,
            PodTemplate | Selector | Budget | Node | Namespace | Definition | Claim | Route | RouteClass
            | Requires(_) | Rbac(_) | Record | Other => false,
        }
    }

    /// Whether its objects make pods, a Deployment by its ReplicaSets; a CronJob only makes what does.
    pub const fn makes_pods(&self) -> bool {
        match self.controller() {
            Some(controller) => match controller.makes {
                Makes::Pods | Makes::ReplicaSets => true,
                Makes::Jobs => false,
            },
            None => false,
        }
    }

    /// Whether its objects select pods.
    pub const fn selects_pods(&self) -> bool {
        match self.role {
            Controls(_) => self.makes_pods(),
            Selector | Budget => true,
            Pod | PodTemplate | Scaler | Node | Namespace | Definition | Claim | Route | RouteClass | Requires(_)
            | Rbac(_) | Record | Other => false,
        }
    }

    /// Whether its objects select pods and make none.
    pub const fn only_selects_pods(&self) -> bool {
        self.selects_pods() && !self.makes_pods()
    }

    /// Whether a change to an object of it may reach pods: it is one, or makes, scales, selects or contains some.
    pub const fn concerns_pods(&self) -> bool {
        match self.role {
            Pod | Scaler | Node | Namespace | Definition => true,
            Controls(_) | Selector | Budget => self.selects_pods(),
            PodTemplate | Claim | Route | RouteClass | Requires(_) | Rbac(_) | Record | Other => false,
        }
    }

    /// Whether a change to an object of it may make pods come and go.
    pub const fn moves_pods(&self) -> bool {
        match self.role {
            Controls(controller) => controller.decides,
            Pod | Scaler | Node | Namespace | Definition => true,
            PodTemplate | Selector | Budget | Claim | Route | RouteClass | Requires(_) | Rbac(_) | Record | Other => {
                false
            }
        }
    }

    /// Whether it decides what becomes of pods: it makes, scales, places or protects them, or they wait for it.
    pub const fn decides_about_pods(&self) -> bool {
        self.scales() || self.decides_by_status()
    }

    /// Whether its status decides so as well.
    pub const fn decides_by_status(&self) -> bool {
        match self.role {
            Controls(_) => self.makes_pods(),
            Pod | Budget | Node | Claim => true,
            PodTemplate | Selector | Scaler | Namespace | Definition | Route | RouteClass | Requires(_) | Rbac(_)
            | Record | Other => false,
        }
    }

    /// Whether its objects set the scale of controllers.
    pub const fn scales(&self) -> bool {
        match self.role {
            Scaler => true,
            Pod | Controls(_) | PodTemplate | Selector | Budget | Node | Namespace | Definition | Claim | Route
            | RouteClass | Requires(_) | Rbac(_) | Record | Other => false,
        }
    }

    /// Whether the pods of its objects may vote: neither a pod nor a namespace runs any, whatever its labels say.
    pub const fn may_be_quorum_group(&self) -> bool {
        match self.role {
            Pod | Namespace => false,
            Controls(_) | PodTemplate | Selector | Budget | Scaler | Node | Definition | Claim | Route | RouteClass
            | Requires(_) | Rbac(_) | Record | Other => true,
        }
    }

    /// Whether it claims hosts.
    pub const fn is_route(&self) -> bool {
        match self.role {
            Route => true,
            Pod | Controls(_) | PodTemplate | Selector | Budget | Scaler | Node | Namespace | Definition | Claim
            | RouteClass | Requires(_) | Rbac(_) | Record | Other => false,
        }
    }

    /// Whether it decides which class a route has, and with it what it claims.
    pub const fn is_route_class(&self) -> bool {
        match self.role {
            RouteClass => true,
            Pod | Controls(_) | PodTemplate | Selector | Budget | Scaler | Node | Namespace | Definition | Claim
            | Route | Requires(_) | Rbac(_) | Record | Other => false,
        }
    }

    /// Whether it decides which hosts are claimed.
    pub const fn claims_hosts(&self) -> bool {
        self.is_route() || self.is_route_class()
    }

    /// What pods depend on by what it says, if they do.
    pub const fn requirement(&self) -> Option<Requirement> {
        match self.role {
            Requires(requirement) => Some(requirement),
            Pod | Controls(_) | PodTemplate | Selector | Budget | Scaler | Node | Namespace | Definition | Claim
            | Route | RouteClass | Rbac(_) | Record | Other => None,
        }
    }

    /// Whether it decides on which nodes pods may be.
    pub const fn decides_places(&self) -> bool {
        match self.role {
            Node | Claim | Requires(Requirement::Volume | Requirement::StorageClass) => true,
            Pod | Controls(_) | PodTemplate | Selector | Budget | Scaler | Namespace | Definition | Route
            | RouteClass | Rbac(_) | Record | Other => false,
            Requires(Requirement::Limits | Requirement::Quota | Requirement::Priority | Requirement::Runtime) => false,
        }
    }

    /// Whether it decides, beside the pods that there are, whether pods find a place.
    pub const fn decides_room(&self) -> bool {
        match self.role {
            Node
            | Claim
            | Namespace
            | Requires(
                Requirement::Volume
                | Requirement::StorageClass
                | Requirement::Limits
                | Requirement::Priority
                | Requirement::Runtime,
            ) => true,
            Pod
            | Controls(_)
            | PodTemplate
            | Selector
            | Budget
            | Scaler
            | Definition
            | Route
            | RouteClass
            | Rbac(_)
            | Record
            | Other
            | Requires(Requirement::Quota) => false,
        }
    }

    /// Whether it decides about pods as they are admitted.
    pub const fn decides_admission(&self) -> bool {
        match self.requirement() {
            Some(Requirement::Limits | Requirement::Quota | Requirement::Priority) => true,
            Some(Requirement::Volume | Requirement::StorageClass | Requirement::Runtime) | None => false,
        }
    }

    /// Whether it decides what pods, or their claims, ask for where they do not say so.
    pub const fn decides_requests(&self) -> bool {
        match self.requirement() {
            Some(Requirement::StorageClass | Requirement::Limits | Requirement::Runtime) => true,
            Some(Requirement::Volume | Requirement::Quota | Requirement::Priority) | None => false,
        }
    }

    /// How it grants rights, if it does.
    pub const fn rbac(&self) -> Option<RbacKind> {
        match self.role {
            Rbac(kind) => Some(kind),
            Pod | Controls(_) | PodTemplate | Selector | Budget | Scaler | Node | Namespace | Definition | Claim
            | Route | RouteClass | Requires(_) | Record | Other => None,
        }
    }

    /// Whether it grants rights.
    pub const fn grants_rights(&self) -> bool {
        self.rbac().is_some()
    }

    /// Whether controllers write it for its owner, and about it: it goes with the owner, and is nothing that anybody looks
    /// for.
    pub const fn is_record(&self) -> bool {
        match self.role {
            Record => true,
            Pod | Controls(_) | PodTemplate | Selector | Budget | Scaler | Node | Namespace | Definition | Claim
            | Route | RouteClass | Requires(_) | Rbac(_) | Other => false,
        }
    }

    /// Whether the language calls its objects workloads (`Workload` in `forEach`).
    pub const fn is_workload(&self) -> bool {
        match self.role {
            Pod | Controls(_) => true,
            PodTemplate | Selector | Budget | Scaler | Node | Namespace | Definition | Claim | Route | RouteClass
            | Requires(_) | Rbac(_) | Record | Other => false,
        }
    }

    /// Whether `spec.replicas` says how many pods its objects want, and a subresource sets it.
    pub fn has_scale(&self) -> bool {
        self.controller().is_some_and(|controller| controller.has_scale)
    }

    /// Whether its controller decides how many pods there are, and which go.
    pub fn decides(&self) -> bool {
        self.controller().is_some_and(|controller| controller.decides)
    }

    /// Whether it adopts pods that it selects and nothing controls.
    pub fn adopts_pods(&self) -> bool {
        self.controller().is_some_and(|controller| controller.adopts == Adopts::Pods)
    }

    /// Whether it replaces its pods when their template is another one.
    pub fn rolls_out(&self) -> bool {
        self.controller().is_some_and(|controller| controller.rolls_out)
    }

    /// Whether its pods stay as they are when their template is another one, as a pod does: new ones follow it.
    pub fn keeps_pods(&self) -> bool {
        match self.role {
            Pod => true,
            Controls(controller) => controller.makes == Makes::Pods && !controller.rolls_out,
            PodTemplate | Selector | Budget | Scaler | Node | Namespace | Definition | Claim | Route | RouteClass
            | Requires(_) | Rbac(_) | Record | Other => false,
        }
    }

    /// Whether the names of its pods are made up, so that none comes back.
    pub fn generates_names(&self) -> bool {
        self.controller().is_some_and(|controller| controller.generates_names)
    }

    /// Whether it releases a pod that it no longer selects, and makes another one.
    pub fn replaces_released(&self) -> bool {
        self.controller().is_some_and(|controller| controller.replaces_released)
    }

    /// Whether its dependents stay where a deletion does not say.
    pub fn orphans_by_default(&self) -> bool {
        self.controller().is_some_and(|controller| controller.orphans_by_default)
    }

    /// Whether what goes with an object of it does not name it: it is found by what is being deleted.
    pub const fn leads_unnamed(&self) -> bool {
        match self.takes_along {
            TakesAlong::Instances | TakesAlong::Claims => true,
            TakesAlong::Dependents
            | TakesAlong::Contents
            | TakesAlong::Pods
            | TakesAlong::Volume
            | TakesAlong::Tokens => false,
        }
    }

    /// Whether more than its dependents goes with an object of it. Pods bear the name of their node, which tells.
    pub const fn leads(&self) -> bool {
        match self.takes_along {
            TakesAlong::Contents
            | TakesAlong::Instances
            | TakesAlong::Claims
            | TakesAlong::Volume
            | TakesAlong::Tokens => true,
            TakesAlong::Dependents | TakesAlong::Pods => false,
        }
    }
}
