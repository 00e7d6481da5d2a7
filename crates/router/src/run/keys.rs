//! Keys and certificates that change while the router runs.

use super::Shell;
use crate::seen::Figures;
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use onym_tables::Tick;

impl Shell {
    /// Goes on with renewed keys; with those from before when the new ones do not count.
    pub(super) fn look_at_keys(&mut self, now: Tick) {
        let now_ms = unix_now_ms();
        for (at, area) in self.areas.iter_mut().enumerate() {
            match area.keys.as_mut().and_then(|keys| keys.look(now, now_ms)) {
                None => {}
                Some(Ok(keys)) => {
                    let certificate = keys.certificate.name();
                    tracing::info!(
                        target: "onym::route", %certificate, "goes on with a renewed certificate"
                    );
                    if self.endpoint.serve(keys.certificate.key_name().to_name()).is_err() {
                        tracing::warn!(
                            target: "onym::route", "too many keys: this one is not served"
                        );
                    }
                    self.router.with(now, at, |router| router.renew(keys.signer.clone()));
                    if let Some(meeting) = &mut area.meeting {
                        meeting.renew(keys.signer.clone());
                    }
                    area.trust.renew(&keys);
                    area.served.renew(keys.certificate, now_ms);
                }
                Some(Err(error)) => {
                    tracing::error!(
                        target: "onym::route", "goes on with the keys from before: {error}"
                    );
                }
            }
        }
    }

    /// Figures with the ends of the certificates that the routers stand on: of several the first.
    pub(super) fn with_dates(&self, figures: Figures) -> Figures {
        let until = |certificate: &Certificate| certificate.validity().not_after.0;
        let areas = || self.areas.iter();
        Figures {
            certificate_until: areas().filter_map(|a| a.served.newest().map(until)).min(),
            anchor_until: areas().filter_map(|a| a.trust.anchor().map(until)).min(),
            ..figures
        }
    }
}
