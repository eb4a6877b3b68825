//! The annotations that the behaviour of controllers depends on, as far as it is modelled, and Suture's
//! own. No other is read here.

/// What deleting a pod costs, for a ReplicaSet that scales down (`pkg/controller/controller_utils.go`,
/// `ActivePodsWithRanks`).
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The class of an Ingress that names none in its fields (`networking/v1/types.go`, `IngressSpec.IngressClassName`).
pub const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
/// Whether an IngressClass is the default one (`networking/v1/types.go`, `AnnotationIsDefaultIngressClass`).
pub const DEFAULT_INGRESS_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";
/// The class of a claim, before its field (`core/v1/types.go`, `BetaStorageClassAnnotation`).
pub const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Suture's own: the object of this uid is meant to go, with what goes with it.
pub const CONFIRM_DELETE: &str = "suture.dev/confirm-delete";

/// All of them.
pub const MODELLED: [&str; 5] =
    [POD_DELETION_COST, INGRESS_CLASS, DEFAULT_INGRESS_CLASS, STORAGE_CLASS, CONFIRM_DELETE];
