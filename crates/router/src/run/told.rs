//! What a router tells, in the log.

use onym_route::Notice;
use onym_route::router::{CommandError, Why};

pub(super) fn tell(notice: &Notice) {
    match notice {
        Notice::NeighbourUp(router, face) => {
            tracing::info!(target: "onym::route", %router, face, "neighbour up");
        }
        Notice::NeighbourDown(router, why) => {
            let level_words = why.words();
            if *why == Why::Goodbye {
                tracing::info!(target: "onym::route", %router, "neighbour down: {level_words}");
            } else {
                tracing::warn!(target: "onym::route", %router, "neighbour down: {level_words}");
            }
        }
        Notice::Refused { router, key, why } => {
            let key = key.as_ref().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(target: "onym::route", %router, key, "refused: {why}");
        }
        Notice::Duplicate(boot) => {
            tracing::error!(target: "onym::route", boot, "another router uses the name of this router");
        }
        Notice::NoFaceId => {
            tracing::error!(
                target: "onym::route",
                "the forwarder does not send IncomingFaceId: neighbours cannot be found"
            );
        }
        Notice::LinkFailed(uri, error) => {
            let why = match error {
                CommandError::Refused(code) => format!("refused with code {code}"),
                CommandError::Silent => "no answer".to_owned(),
            };
            tracing::warn!(target: "onym::route", uri, "the link cannot be created: {why}");
        }
    }
}
