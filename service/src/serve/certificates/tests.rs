//! That rotation never serves what somebody does not trust yet, or trusts no more.

use std::collections::VecDeque;
use std::sync::Mutex;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::*;

/// A vault that another replica may write to.
#[derive(Default)]
struct Memory(Mutex<Option<String>>);

impl Vault for Memory {
    fn load(&self) -> Result<Option<String>, VaultError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn save(&self, text: &str, previous: Option<&str>) -> Result<(), VaultError> {
        let mut held = self.0.lock().unwrap();
        if held.as_deref() != previous {
            return Err(VaultError::Changed);
        }
        *held = Some(text.to_owned());
        Ok(())
    }
}

const HOUR: i64 = 3_600;
const START: i64 = 1_800_000_000;

fn lives() -> Lives {
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    Lives { authority: hours(300), serving: hours(60), overlap: hours(4) }
}

fn names() -> Vec<String> {
    vec!["suture.suture-system.svc".to_owned(), "127.0.0.1".to_owned()]
}

/// Whether a client that trusts a bundle takes a certificate.
fn taken(identity: &Identity, bundle: &str, name: &str, now: i64) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let leaf = CertificateDer::from_pem_slice(identity.chain.as_bytes()).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now).unwrap()));
    verifier.verify_server_cert(&leaf, &[], &name, &[], now).map(drop)
}

#[test]
fn whoever_is_behind_by_less_than_the_overlap_can_always_connect() {
    let (vault, lives) = (Memory::default(), lives());
    let mut published = String::new();
    // what API servers trust that are behind by up to the overlap; their clocks are five minutes behind, too
    let mut history: VecDeque<String> = VecDeque::new();
    let mut addresses: VecDeque<String> = VecDeque::new();
    let mut changes = 0;
    for step_number in 0..2_000 {
        let now = START + step_number * HOUR;
        let kept = step(&vault, &names(), &lives, &published, now).unwrap();
        if !published.is_empty() {
            for trusted in &history {
                for name in names() {
                    let took = taken(&identity(&kept), trusted, &name, now - 290);
                    assert!(took.is_ok(), "hour {step_number}: {took:?}");
                }
            }
        }
        // whatever address was told up to the overlap ago is taken
        let (current, others) = kept.segments(now);
        for told in &addresses {
            assert!(*told == current || others.contains(told), "hour {step_number}: an address is not taken any more");
        }
        addresses.push_back(current);
        if addresses.len() > history.len().max(1) {
            addresses.pop_front();
        }
        if kept.next.is_none() && !published.contains(kept.current.certificate.trim()) {
            assert_eq!(published, "", "an authority is served that was never published");
        }
        changes += i32::from(published != kept.bundle());
        published = kept.bundle();
        history.push_back(published.clone());
        if history.len() > 4 {
            history.pop_front();
        }
    }
    // an authority is followed after 205 hours: 2,000 hold nine rotations, each of which adds one and takes one away
    assert_eq!(changes, 19);
}

#[test]
fn an_authority_is_not_served_before_it_was_published() {
    let (vault, lives) = (Memory::default(), lives());
    let first = step(&vault, &names(), &lives, "", START).unwrap();
    let old = first.bundle();
    let due = START + 201 * HOUR;
    let mut kept = step(&vault, &names(), &lives, &old, due).unwrap();
    assert_ne!(kept.bundle(), old);
    for hour in 0..90 {
        kept = step(&vault, &names(), &lives, &old, due + hour * HOUR).unwrap();
        assert_eq!(kept.current.certificate, first.current.certificate, "hour {hour}");
    }
    let bundle = kept.bundle();
    step(&vault, &names(), &lives, &bundle, due + 90 * HOUR).unwrap();
    kept = step(&vault, &names(), &lives, &bundle, due + 93 * HOUR).unwrap();
    assert_eq!(kept.current.certificate, first.current.certificate);
    kept = step(&vault, &names(), &lives, &bundle, due + 94 * HOUR).unwrap();
    assert_ne!(kept.current.certificate, first.current.certificate);
    assert!(taken(&identity(&kept), &bundle, "127.0.0.1", due + 94 * HOUR).is_ok());
    assert!(taken(&identity(&kept), &old, "127.0.0.1", due + 94 * HOUR).is_err());
}

#[test]
fn an_authority_that_has_ended_is_replaced_even_unpublished() {
    let (vault, lives) = (Memory::default(), lives());
    step(&vault, &names(), &lives, "", START).unwrap();
    let end = START + 301 * HOUR;
    let kept = step(&vault, &names(), &lives, "", end).unwrap();
    assert!(taken(&identity(&kept), &kept.bundle(), "127.0.0.1", end).is_ok());
}

#[test]
fn a_restart_and_another_replica_serve_by_the_same_authority() {
    let vault = Arc::new(Memory::default());
    let open = |names: Vec<String>| Keeper::open(vault.clone(), names, lives()).unwrap();
    let (first, second) = (open(names()), open(names()));
    assert!(first.identity() == second.identity());
    let renamed = open(vec!["other.svc".to_owned()]);
    assert_eq!(renamed.bundle(), first.bundle());
    assert!(taken(&renamed.identity(), &first.bundle(), "other.svc", now_secs()).is_ok());
    assert!(taken(&renamed.identity(), &first.bundle(), "127.0.0.1", now_secs()).is_err());
}

#[test]
fn of_two_replicas_that_rotate_at_once_one_wins() {
    let vault = Memory::default();
    step(&vault, &names(), &lives(), "", START).unwrap();
    let read = vault.load().unwrap();
    step(&vault, &names(), &lives(), "", START + 250 * HOUR).unwrap();
    assert!(matches!(vault.save("late", read.as_deref()), Err(VaultError::Changed)));
}

#[test]
fn a_folder_keeps_an_authority_for_nobody_else_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("suture-folder-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let vault = Folder::at(&folder);
    assert_eq!(vault.load().unwrap(), None);
    vault.save("one", None).unwrap();
    assert!(matches!(vault.save("two", None), Err(VaultError::Changed)));
    vault.save("two", Some("one")).unwrap();
    assert_eq!(vault.load().unwrap().as_deref(), Some("two"));
    let mode = fs::metadata(&vault.file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::write(&vault.file, "nonsense").unwrap();
    let opened = Keeper::open(Arc::new(vault), names(), lives());
    assert!(matches!(opened, Err(CertificateError::Kept(_))));
    fs::remove_dir_all(&folder).unwrap();
}
