//! The annotations that the behaviour of controllers depends on, as far as it is modelled. No other is read here.

/// What deleting a pod costs, for a ReplicaSet that scales down (`pkg/controller/controller_utils.go`,
/// `ActivePodsWithRanks`).
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The class of an Ingress that names none in its fields (`networking/v1/types.go`, `IngressSpec.IngressClassName`).
pub const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";
/// Whether an IngressClass is the default one (`networking/v1/types.go`, `AnnotationIsDefaultIngressClass`).
pub const DEFAULT_INGRESS_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";
/// The class of a claim, before its field (`core/v1/types.go`, `BetaStorageClassAnnotation`).
pub const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// All of them.
pub const MODELLED: [&str; 4] = [POD_DELETION_COST, INGRESS_CLASS, DEFAULT_INGRESS_CLASS, STORAGE_CLASS];
