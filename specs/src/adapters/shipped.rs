//! The shipped adapters: what the custom resources of well-known operators mean. Each is a file in `specs/adapters`, with its
//! source, named like the definition that it is for.

use std::sync::LazyLock;

use crate::spec::{ResourceAdapter, Spec, SpecError, parse_specs};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../adapters/", $name, ".yaml")))),*]
    };
}

/// The adapters that are shipped: name and YAML.
pub const SHIPPED: &[(&str, &str)] = files![
    "alertmanagers.monitoring.coreos.com",
    "applications.argoproj.io",
    "cassandradatacenters.cassandra.datastax.com",
    "certificates.cert-manager.io",
    "clusterissuers.cert-manager.io",
    "clusters.postgresql.cnpg.io",
    "elasticsearches.elasticsearch.k8s.elastic.co",
    "helmreleases.helm.toolkit.fluxcd.io",
    "issuers.cert-manager.io",
    "kafkanodepools.kafka.strimzi.io",
    "kafkas.kafka.strimzi.io",
    "machinedeployments.cluster.x-k8s.io",
    "machines.cluster.x-k8s.io",
    "mongodbcommunity.mongodbcommunity.mongodb.com",
    "postgresqls.acid.zalan.do",
    "prometheuses.monitoring.coreos.com",
    "rabbitmqclusters.rabbitmq.com",
    "redisclusters.redis.redis.opstreelabs.in",
    "rollouts.argoproj.io",
    "scaledobjects.keda.sh",
    "virtualmachines.kubevirt.io",
    "zookeeperclusters.zookeeper.pravega.io",
];

type Set<T> = Result<T, Vec<SpecError>>;

/// They are the same in every process, and each load of a policy asks for them.
static READ: LazyLock<Set<Vec<ResourceAdapter>>> = LazyLock::new(read);

/// The shipped adapters.
///
/// # Errors
/// Never, as a test holds: what is wrong with one.
pub fn shipped() -> Result<&'static [ResourceAdapter], Vec<SpecError>> {
    READ.as_deref().map_err(Clone::clone)
}

fn read() -> Set<Vec<ResourceAdapter>> {
    let mut found = Vec::new();
    for (name, text) in SHIPPED {
        for spec in parse_specs(text, &format!("specs/adapters/{name}.yaml"))? {
            if let Spec::ResourceAdapter(adapter) = spec {
                found.push(*adapter);
            }
        }
    }
    Ok(found)
}
