//! The command line: every subcommand and flag, as data.

use std::env;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

mod formats;

pub use formats::{DecisionFormat, Format, PlainFormat, ReplayFormat, ReportFormat};

use crate::failure_policy::FailurePolicy;
use crate::manifest::KUBECTL;
use crate::profile::ProfileName;
use crate::replay::shard::Shard;
use crate::unmodelled::Unmodelled;

/// Decides whether a change to a Kubernetes cluster can break an invariant in any future.
///
/// Exit codes: 0 allowed, clean, all passed; 1 denied, violated, a case failed; 2 usage or invalid input; 3 undecided;
/// 4 a file cannot be read or written.
#[derive(Debug, Parser)]
#[command(name = "suture", version, max_term_width = 100, arg_required_else_help = true)]
#[cfg_attr(not(feature = "serve"), command(after_help = "Built without what runs in front of a cluster: `make build`"))]
pub struct Arguments {
    /// Flags of every subcommand.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Arguments {
    /// Those of this process; where they are wrong, that is said and the process ends. kubectl runs a plugin under the name
    /// `kubectl-suture`, a link to the program, and is what people type then.
    pub fn of_process() -> Self {
        let program = env::args_os().next().map(PathBuf::from);
        let is_plugin = program.as_deref().and_then(Path::file_stem).is_some_and(|name| name == "kubectl-suture");
        let command = if is_plugin { Self::command().bin_name("kubectl suture") } else { Self::command() };
        Self::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }
}

/// Flags of every subcommand.
#[derive(Clone, Copy, Debug, Args)]
pub struct Common {
    /// Also lists what is proved, passed or clean
    #[arg(long, global = true)]
    pub verbose: bool,
    /// Prints errors only: the exit code says the rest
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Leaves out how long things took, so that the same question prints the same bytes
    #[arg(long, global = true)]
    pub no_timing: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Proves or refutes a change against a recorded cluster
    Check(Box<Check>),
    /// Runs suites: cases with requests and the outcomes they expect
    Test(Test),
    /// Says what is violated now
    Audit(Audit),
    /// Says what of a log's writes would have been denied, when, by whom and why: of the audit log of an API server, or of
    /// recorded AdmissionReviews
    Replay(Box<Replay>),
    /// Says which requests a change of invariants newly denies or allows
    Diff(Box<Diff>),
    /// Parses and compiles invariants, templates, adapters, policies and suites
    Lint(Lint),
    /// Prints the value of an expression in a recorded cluster, and the values of its parts
    Eval(Eval),
    /// Shows a report for people, as text or as a page; or says what the code of an error means
    Explain(Explain),
    /// Shows the reports of a cluster in your browser, as far as you may read them: serves them on this machine until Ctrl-C,
    /// and asks for them through the API server, with your kubeconfig
    #[cfg(feature = "serve")]
    Reports(Reports),
    /// Writes YAML files anew in one style: lines of 120 characters, comments stay
    Fmt(Fmt),
    /// Prints what the policy reads of the cluster of the current kubeconfig context, as `--state` takes it; no values of
    /// Secrets and ConfigMaps
    #[cfg(feature = "serve")]
    Snapshot(Snapshot),
    /// Decides admission requests in front of a cluster
    #[cfg(feature = "serve")]
    Serve(Box<crate::serve::options::Options>),
    /// Measures decision time and memory on a generated cluster
    Bench(Bench),
    /// Prints what is to be installed in a cluster, as YAML
    #[cfg(feature = "serve")]
    Manifests(Manifests),
    /// Takes the webhooks out of the cluster's configuration at once: no request is judged any more
    #[cfg(feature = "serve")]
    EmergencyOff(EmergencyOff),
    /// Prints the completion script of a shell
    Completions(Completions),
    /// Prints the man page of the command, or writes those of all subcommands
    Manpages(Manpages),
    /// Prints the versions of Suture and Z3
    Version(Version),
}

/// The recorded cluster.
#[derive(Debug, Args)]
pub struct State {
    /// Manifests as `kubectl get -o yaml` prints them: a file, a folder (*.yaml, *.yml, *.json in it, hidden ones left out),
    /// `-` for standard input, or `cluster` for that of the current kubeconfig context; may be given more than once
    #[arg(long, required = true, value_name = "PATH")]
    pub state: Vec<PathBuf>,
    /// A kind that was not read: unknown instead of absent
    #[arg(long, value_name = "KIND")]
    pub unknown: Vec<String>,
    /// The time it is, in RFC 3339 [default: the newest timestamp in the state]
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
}

/// What must hold, and what custom resources mean.
#[derive(Debug, Args)]
pub struct Policy {
    /// Which of the shipped templates are judged, and by which rules
    #[arg(long, value_enum, default_value_t = ProfileName::Baseline, value_name = "PROFILE")]
    pub profile: ProfileName,
    /// Invariants, templates, grants and exemptions beside those of the profile: files or folders
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub invariants: Vec<PathBuf>,
    /// ResourceAdapters: files or folders
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub adapters: Vec<PathBuf>,
}

/// `suture check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The recorded cluster.
    #[command(flatten)]
    pub state: State,
    /// What must hold.
    #[command(flatten)]
    pub policy: Policy,
    /// What is to be done.
    #[command(flatten)]
    pub asked: Asked,
    /// What becomes of a change that touches a custom resource which no ResourceAdapter explains
    #[arg(long, value_enum, default_value_t = Unmodelled::Warn, value_name = "ANSWER")]
    pub unmodelled: Unmodelled,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t = DecisionFormat::Report(ReportFormat::Text))]
    pub output: DecisionFormat,
}

/// The change, as an AdmissionReview or as kubectl's commands name it. What is given more than once is judged together.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).args([
    "review", "apply", "delete", "scale", "evict", "drain", "cordon", "patch", "label",
]))]
pub struct Asked {
    /// The AdmissionReview to decide
    #[arg(long, value_name = "FILE")]
    pub review: Option<PathBuf>,
    /// Manifests to apply server-side, judged together: fields that are left out stay, unless only the manager owns them
    #[arg(short = 'f', long, num_args = 1.., value_name = "PATH")]
    pub apply: Vec<PathBuf>,
    /// Puts each manifest in place of the whole object
    #[arg(long, requires = "apply")]
    pub replace: bool,
    /// Who applies, as `metadata.managedFields` of the state names it
    #[arg(long, requires = "apply", conflicts_with = "replace", default_value = KUBECTL, value_name = "NAME")]
    pub field_manager: String,
    /// An object to delete
    #[arg(long, value_name = "KIND/NS/NAME")]
    pub delete: Vec<String>,
    /// What becomes of the dependents of what is deleted [default: the API server's]
    #[arg(long, value_name = "POLICY", value_enum, requires = "delete")]
    pub propagation_policy: Option<PropagationPolicy>,
    /// An object to scale
    #[arg(long, value_name = "KIND/NS/NAME=N")]
    pub scale: Vec<String>,
    /// A pod to evict
    #[arg(long, value_name = "NS/POD")]
    pub evict: Vec<String>,
    /// A node to drain: it is cordoned and its pods are evicted at once, those of DaemonSets and mirror pods left out
    #[arg(long, value_name = "NODE")]
    pub drain: Vec<String>,
    /// Also drains pods that nothing makes anew
    #[arg(long, requires = "drain")]
    pub force: bool,
    /// A node to cordon
    #[arg(long, value_name = "NODE")]
    pub cordon: Vec<String>,
    /// An object to patch: strategically, a custom resource by a JSON merge patch
    #[arg(long, value_name = "KIND/NS/NAME=JSON")]
    pub patch: Vec<String>,
    /// An object to label, or with `KEY-` to take a label from
    #[arg(long, value_name = "KIND/NS/NAME=KEY=VALUE")]
    pub label: Vec<String>,
    /// The namespace of what names none [default: `default` for manifests]
    #[arg(short, long, value_name = "NS", conflicts_with = "review")]
    pub namespace: Option<String>,
    /// Who asks: a user name; service accounts get their groups [default: kubernetes-admin of system:masters]
    #[arg(long = "as", value_name = "USER", conflicts_with = "review")]
    pub user: Option<String>,
}

/// The propagation policies of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum PropagationPolicy {
    /// Dependents are collected after it.
    Background,
    /// Dependents are collected before it.
    Foreground,
    /// Dependents stay, without it as owner.
    Orphan,
}

/// `suture test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Suites: files, or folders that are searched for them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Runs the cases of which `SUITE: CASE` matches a regular expression only
    #[arg(long, value_name = "REGEX")]
    pub run: Option<String>,
    /// Also lists the clauses that no step found broken
    #[arg(long)]
    pub coverage: bool,
    /// Runs again whenever a file of the suites changes, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    pub output: ReportFormat,
}

/// `suture audit`.
#[derive(Debug, Args)]
pub struct Audit {
    /// The recorded cluster.
    #[command(flatten)]
    pub state: State,
    /// What must hold.
    #[command(flatten)]
    pub policy: Policy,
    /// Also says what is one step away from breaking: by a node or a zone that fails, or by one request of those that change
    /// one object
    #[arg(long)]
    pub one_step: bool,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t = DecisionFormat::Report(ReportFormat::Text))]
    pub output: DecisionFormat,
}

/// `suture replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// An audit log (`--audit-log-path` of an API server, level RequestResponse), a JSON event or AdmissionReview on each line;
    /// `-` for standard input. May be given more than once: the files of several API servers, or of one log
    #[arg(long, value_name = "FILE", required_unless_present_any = ["reviews", "merge"])]
    pub log: Vec<PathBuf>,
    /// AdmissionReviews, taken to have been admitted, in this order after the log: files or folders
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub reviews: Vec<PathBuf>,
    /// The cluster as it was when the log begins, as `check` takes it. What the state holds already of the log is passed over
    /// [default: an empty cluster]
    #[arg(long, value_name = "PATH")]
    pub state: Vec<PathBuf>,
    /// A kind that was not read: unknown instead of absent
    #[arg(long, value_name = "KIND", requires = "state")]
    pub unknown: Vec<String>,
    /// The time that it is where entries have none, in RFC 3339 [default: the newest timestamp in the state]
    #[arg(long, value_name = "TIME", requires = "state")]
    pub time: Option<String>,
    /// What must hold.
    #[command(flatten)]
    pub policy: Policy,
    /// Judges a part of the entries only: number I of N, counted from 0 as Indexed Jobs do. All are applied. It ends with exit
    /// code 0 whatever it finds
    #[arg(long, value_name = "I/N", default_value = "0/1")]
    pub shard: Shard,
    /// Writes what is found to this file, every ten seconds and at the end. If it is there, goes on where it ends
    #[arg(long, value_name = "FILE")]
    pub part: Option<PathBuf>,
    /// Puts the files of all shards together instead of replaying anything
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with_all = ["log", "reviews", "state", "shard", "part"])]
    pub merge: Vec<PathBuf>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t = ReplayFormat::Text)]
    pub output: ReplayFormat,
}

/// `suture diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// The invariants as they are: a file or a folder
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The invariants as they are to be: a file or a folder
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// The recorded cluster.
    #[command(flatten)]
    pub state: State,
    /// Which of the shipped templates are judged beside both
    #[arg(long, value_enum, default_value_t = ProfileName::Baseline, value_name = "PROFILE")]
    pub profile: ProfileName,
    /// ResourceAdapters: files or folders
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub adapters: Vec<PathBuf>,
    /// Who sends the requests: a user name [default: kubernetes-admin of system:masters]
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// Also compares what both would have denied of an audit log that begins with the state, as `suture replay` takes it
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub output: PlainFormat,
}

/// `suture lint`.
#[derive(Debug, Args)]
pub struct Lint {
    /// Files or folders
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// A recorded cluster, as `check` takes it: which invariants have no instance in it
    #[arg(long, value_name = "PATH")]
    pub state: Vec<PathBuf>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    pub output: ReportFormat,
}

/// `suture eval`.
#[derive(Debug, Args)]
pub struct Eval {
    /// The expression, as in an invariant; `before` and `now` are the recorded cluster
    #[arg(value_name = "EXPR")]
    pub expression: String,
    /// The recorded cluster.
    #[command(flatten)]
    pub state: State,
    /// The object that `self` is
    #[arg(long, value_name = "KIND/NS/NAME")]
    pub on: Option<String>,
    /// ResourceAdapters: files or folders
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub adapters: Vec<PathBuf>,
    /// The namespace of what `--on` names without one
    #[arg(short, long, value_name = "NS")]
    pub namespace: Option<String>,
}

/// `suture explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// A report that `suture check -o json` printed, `-` for standard input; or the code of an error, such as E0103
    /// [default: lists all codes]
    #[arg(value_name = "REPORT|CODE")]
    pub what: Option<String>,
    /// The report of this id, of those that `suture serve --reports` keeps
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ID", requires = "reports", conflicts_with = "what")]
    pub id: Option<String>,
    /// The folder that they are kept in
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "FOLDER", requires = "id")]
    pub reports: Option<PathBuf>,
    /// The form of the report
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
    /// Writes the report as one page without anything from elsewhere, for an incident ticket; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub html: Option<PathBuf>,
}

/// `suture reports`.
#[cfg(feature = "serve")]
#[derive(Debug, Args)]
pub struct Reports {
    /// The port on this machine [default: a free one]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// The namespace that Suture lives in
    #[arg(short, long, default_value = "suture-system", value_name = "NAMESPACE")]
    pub namespace: String,
    /// The Service that leads to its reports, and the name or the number of the port
    #[arg(long, default_value = "suture-reports:reports", value_name = "NAME:PORT")]
    pub service: String,
    /// The kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the service account of the pod]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// A file with the token that says who you are, where the kubeconfig has none: `kubectl create token` prints one
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Shows the reports of this folder instead, all of them, which no `suture serve` uses now
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["namespace", "service", "kubeconfig", "context", "token_file"])]
    pub reports: Option<PathBuf>,
}

/// `suture fmt`.
#[derive(Debug, Args)]
pub struct Fmt {
    /// Files, folders (*.yaml and *.yml in them, hidden ones left out), or `-` from standard input to standard output
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Writes nothing: lists the files that would change, and ends with 1 if there are any
    #[arg(long)]
    pub check: bool,
}

/// `suture snapshot`.
#[derive(Debug, Args)]
pub struct Snapshot {
    /// What says which kinds are read.
    #[command(flatten)]
    pub policy: Policy,
}

/// `suture bench`.
#[derive(Debug, Args)]
pub struct Bench {
    /// Nodes of the cluster
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub nodes: u32,
    /// Pods of the cluster [default: 30 for each node]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub pods: Option<u32>,
    /// Where the generator starts: the same seed makes the same cluster and the same requests
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub seed: u64,
    /// Decisions for each template, fewer if they take longer than three seconds
    #[arg(long, default_value_t = 400, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub requests: u32,
    /// Measures these templates only [default: each shipped template, then all of them together, then the profile `baseline`]
    #[arg(long, num_args = 1.., value_name = "NAME")]
    pub templates: Vec<String>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t = PlainFormat::Text)]
    pub output: PlainFormat,
}

/// `suture manifests`.
#[derive(Debug, Args)]
pub struct Manifests {
    /// Which
    #[arg(value_enum)]
    pub part: Part,
    /// What the webhook and the rights are generated from.
    #[command(flatten)]
    pub policy: Policy,
    /// The namespace that Suture lives in
    #[arg(long, default_value = "suture-system", value_name = "NAMESPACE")]
    pub namespace: String,
    /// The service account that Suture runs as
    #[arg(long, default_value = "suture", value_name = "NAME")]
    pub service_account: String,
    /// The Service that the API server calls, in that namespace
    #[arg(long, default_value = "suture", value_name = "NAME")]
    pub service: String,
    /// The URL that the API server calls, in place of a Service; a static manifest needs one
    #[arg(long, value_name = "URL", required_if_eq("part", "static"))]
    pub url: Option<String>,
    /// The certificates that Suture's is signed by, in PEM
    #[arg(long, value_name = "FILE")]
    pub ca_bundle: Option<PathBuf>,
    /// What becomes of a request when Suture does not answer
    #[arg(long, value_enum, default_value_t = FailurePolicy::Fail, value_name = "POLICY")]
    pub failure_policy: FailurePolicy,
    /// The file that `suture serve --path-token` is given
    #[arg(long, value_name = "FILE")]
    pub path_token: Option<PathBuf>,
    /// Namespaces of the system beside kube-system, kube-public and kube-node-lease: see `suture serve --help`
    #[arg(long, num_args = 1.., value_name = "NAMESPACE")]
    pub system_namespaces: Vec<String>,
    /// What `suture serve` tells beside, which takes rights.
    #[cfg(feature = "serve")]
    #[command(flatten)]
    pub telling: crate::serve::options::Telling,
    /// Where the schemas are written, one file each [default: standard output, as one document]
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
}

/// What is to be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The CustomResourceDefinitions of Suture's own kinds.
    Crds,
    /// The ValidatingWebhookConfiguration.
    Webhook,
    /// The same as a file for an API server's staticManifestsDir.
    Static,
    /// The service account and its rights.
    Rbac,
    /// JSON Schema files for editors.
    Schemas,
    /// Definitions, rights and webhook.
    All,
}

/// `suture emergency-off`.
#[derive(Debug, Args)]
pub struct EmergencyOff {
    /// Why, for whoever finds it
    #[arg(long, default_value = "emergency", value_name = "TEXT")]
    pub reason: String,
    /// Asks the API server whether it could be done, and does nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Puts it on again
    #[arg(long, conflicts_with = "reason")]
    pub undo: bool,
    /// Only prints the line for kubectl, without asking a cluster
    #[arg(long, conflicts_with = "dry_run")]
    pub print: bool,
}

/// `suture completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `suture manpages`.
#[derive(Debug, Args)]
pub struct Manpages {
    /// Where the pages are written, one for each subcommand [default: standard output, the page of the command]
    #[arg(long, value_name = "FOLDER")]
    pub to: Option<PathBuf>,
}

/// `suture version`.
#[derive(Debug, Args)]
pub struct Version {
    /// The form of the answer
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    pub output: Format,
}
