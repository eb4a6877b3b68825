//! Requests that reach nothing but the object that they write, which is seen without looking at what they do.
//!
//! Such is the write of a ConfigMap or Secret that is on its own:
//!
//! | what could reach further | why it does not |
//! |---|---|
//! | owners and dependents | no version of it names an owner, and no object names it as one |
//! | references | it refers to nothing, and nothing refers to it |
//! | selectors, pods, nodes, hosts, volumes, definitions | its kind has nothing to do with them |
//! | lists | no invariant lists its kind, nor anything at all to judge an object of its kind |
//! | adapters | there are none |

use suture_model::change::{Operation, Request};
use suture_model::kinds::{Kind, KindTraits};
use suture_model::value::{Str, Val};
use suture_specs::functions::Func;

use super::{REFERENTS, Relevance};

impl Relevance<'_> {
    /// Whether a request reaches nothing but its own object, and nothing reaches that but what writes it, refers to it,
    /// or owns it.
    pub(super) fn is_lone(&self, request: &Request) -> bool {
        let Request { target, operation, subresource, object, old, .. } = request;
        let written = *operation != Operation::Connect && subresource.is_empty();
        if !written || !REFERENTS.iter().any(|name| target.kind.is(name)) {
            return false;
        }
        let shown = self.snapshot.get(target);
        let owners = |object: &Val| !object.items_at(&["metadata", "ownerReferences"]).is_empty();
        if [object, old].into_iter().flatten().any(owners) || shown.is_some_and(|shown| !shown.owners().is_empty()) {
            return false;
        }
        let uid = |object: &Option<Val>| object.as_ref()?.str_at(&["metadata", "uid"]).cloned();
        // an object that is made with a uid that was used gets another one
        let made = *operation == Operation::Create;
        if made && uid(object).is_none_or(|uid| uid.is_empty() || self.snapshot.by_uid(&uid).is_some()) {
            return false;
        }
        let uids = [uid(object), uid(old), shown.map(|shown| shown.uid.clone())];
        let owns = |uid: &Str| !self.snapshot.owned_by(uid).is_empty();
        !uids.iter().flatten().any(owns) && self.snapshot.referrers(target).is_empty() && self.is_unlisted(&target.kind)
    }

    /// Whether nothing but a key leads to objects of a kind that refer to nothing, and from them.
    fn is_unlisted(&self, kind: &Kind) -> bool {
        self.snapshot.adapters().kinds().is_empty()
            && self.invariants.iter().all(|analysis| {
                let uses = &analysis.footprint.uses;
                let here = uses.lists.contains(kind)
                    || uses.named.contains(&kind.kind)
                    || uses.within.iter().any(|(name, _)| *name == kind.kind);
                let lists = !(uses.lists.is_empty() && uses.named.is_empty() && uses.within.is_empty())
                    || uses.funcs.contains(&Func::DisruptionsWhenSettled);
                let from_here = lists && analysis.may_be(kind, &[]);
                !(uses.everything || here || from_here)
            })
    }
}

/// Whether a request only sets the replicas of an object that the watch shows: whatever that refers to is shown, too.
pub(super) fn scales(request: &Request) -> bool {
    let scaled = request.target.kind.has(KindTraits::has_scale);
    scaled && request.operation == Operation::Update && request.subresource == "scale"
}
