//! A request as it is judged, and as it lands: of an eviction these are not what was sent.

use suture_model::apply::apply;
use suture_model::change::{Operation, Request};
use suture_model::state::State;

use crate::serve::store::View;

/// Whether the API server asks again about a request that was entered: its uid alone does not say that, who may ask could
/// choose it.
pub(super) fn same_call(known: &Request, request: &Request) -> bool {
    request.repeats(known) || (is_eviction(request) && deletion(request).repeats(known))
}

/// Whether it evicts a pod.
pub(super) fn is_eviction(request: &Request) -> bool {
    request.operation == Operation::Create && request.subresource == "eviction"
}

/// The request as it is judged: an eviction that its budget refuses, by what the watch shows, is judged as if the budget
/// let it pass. The budget's status may be newer in the API server than here. A pod that is not seen here, perhaps since
/// nothing reads pods, is still there to be evicted.
pub(super) fn effective(request: &Request, view: &View) -> Request {
    let seen = view.snapshot.get(&request.target).is_some();
    if is_eviction(request) && seen && !apply(&mut State::new(&view.snapshot), request).effective {
        return deletion(request);
    }
    request.clone()
}

/// The request as others have to reckon with it: once an eviction is admitted here, the budget's status shows it as
/// spent before the pod shows it as gone, and must not seem to refuse it.
pub(super) fn landing(request: &Request, view: &View) -> Request {
    let request = request.clone().resolve(&State::new(&view.snapshot));
    if is_eviction(&request) { deletion(&request) } else { request }
}

fn deletion(eviction: &Request) -> Request {
    Request { operation: Operation::Delete, subresource: String::new(), object: None, ..eviction.clone() }
}
