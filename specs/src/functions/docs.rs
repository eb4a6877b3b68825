//! What functions give, where it is long or said of several signatures.

pub(super) const SIZE: &str = "how many characters, bytes, items or entries there are";
pub(super) const SUM: &str = "the sum of a list; 0 of an empty one";
pub(super) const MIN: &str = "the smallest item; fails on an empty list";
pub(super) const MAX: &str = "the largest item; fails on an empty list";
pub(super) const TO_INT: &str = "as an int; fails if it does not fit";
pub(super) const TO_UINT: &str = "as a uint; fails if it does not fit";
pub(super) const TO_DOUBLE: &str = "as a double";
pub(super) const TO_STRING: &str = "as a string";
pub(super) const TO_TIME: &str = "from RFC 3339, or from seconds since 1970";
pub(super) const INDEX_OF: &str = "where a string first occurs, or -1";
pub(super) const LAST_INDEX_OF: &str = "where a string last occurs, or -1";
pub(super) const HOURS: &str = "of a timestamp the hour, of a duration all of it in hours";
pub(super) const MINUTES: &str = "of a timestamp the minute, of a duration all of it in minutes";
pub(super) const SECONDS: &str = "of a timestamp the second, of a duration all of it in seconds";
pub(super) const MILLIS: &str = "the milliseconds within the second";
pub(super) const GREATEST: &str = "the greatest of two or three numbers, or of a list";
pub(super) const DISRUPTIONS: &str =
    "how many disruptions the budget allows once every wanted pod is ready: none (it cannot tell) or one number";
pub(super) const MEANT: &str = "whether the object is meant to go: it, its namespace or definition, or all that it exists for, bear the annotation suture.dev/confirm-delete with their uid";
pub(super) const DUE_WITHIN: &str = "how often at most a schedule of cron is due within a time, the end of which is not counted; clocks are taken to run on. Fails if it is no schedule";
pub(super) const WORKLOADS: &str = "the live workloads of a namespace that want pods, each pod by one of them: workloads and custom resources with a `template` that no other one controls, and pods that none of them makes";
pub(super) const MOST_WANTED: &str = "the most pods that the object may want: by itself, its custom resource or its autoscalers; one run of a CronJob, or all of its Jobs";
pub(super) const USAGE: &str = "what a ResourceQuota counts of one pod of the object under a name such as `pods`, `requests.cpu` or `limits.memory`, with the defaults of LimitRanges; in the unit of `requests`";
pub(super) const REFUSALS: &str = "why a LimitRange or ResourceQuota refuses every pod that the object makes: limits that it breaks, resources that it does not state";
pub(super) const POSSIBLE_NODES: &str = "the nodes on which the pod, or a new pod of the object, may run, or from which a claim or volume may be used: by node selector, affinity, taints, volumes, size and the pods that a required affinity asks for; whatever room others take";
pub(super) const RIGHTS_LOST: &str = "what the ServiceAccount of the object's pods could do and can do no more, of what they need: leases of their namespace, custom resources, what the object's adapter says that it reads";
pub(super) const SELECTED_BY: &str =
    "the objects of its namespace whose selector matches the pod, or the pods that the object makes";
pub(super) const UNSCALED: &str = "the controllers of pods that the budget matches, or will match, which have no scale: a percentage or `maxUnavailable` of them cannot be counted";
pub(super) const LEAST: &str = "the least of two or three numbers, or of a list";
pub(super) const LISTED_ENDPOINTS: &str =
    "how many ready endpoints the EndpointSlices, or else the Endpoints, of a service without a selector list";
pub(super) const UNPLACED: &str = "how many of so many pods of the object find no place beside what is placed, at worst after so many nodes are gone; the last argument is a label selector of nodes whose groups may grow by nodes like them, or null. A DaemonSet is asked for one pod on each of its nodes";
pub(super) const OBSTACLES: &str = "why nodes take no more pods of the object than they do, for the same arguments";
pub(super) const ROLLOUT_OBSTACLES: &str = "why the first new pod of a Deployment, StatefulSet or DaemonSet finds no place when its template is rolled out; empty where it finds one. The last argument is as in `unplaced`";
pub(super) const PREEMPTED: &str = "the pods of the object that new pods of workloads with a higher priority may preempt, at worst: those that find no place otherwise";
