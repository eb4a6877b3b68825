//! What rows have to say as other tables say it.

use super::*;

#[test]
fn what_names_a_kind_is_known_to_the_compiler() {
    for func in Func::ALL {
        let names = match relations(*func).source {
            Source::OfKind | Source::Lookup | Source::InNamespace(KindArgument::At(_)) => true,
            Source::Arguments
            | Source::Itself
            | Source::Presence
            | Source::Object
            | Source::After(_)
            | Source::InNamespace(KindArgument::Is(_))
            | Source::Beside(_)
            | Source::Node => false,
        };
        assert_eq!(func.kind_argument(3).is_some(), names, "{func}");
    }
}
