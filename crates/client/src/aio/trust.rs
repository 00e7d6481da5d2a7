//! Data believed over a client that is awaited: certificates are fetched by their names.

use super::Client;
use crate::error::Error;
use crate::fetch::FetchError;
use crate::request::{Packet, Request};
use crate::schema::{Trust, did_not_come};
use onym_wire::data::Data;
use onym_wire::name::Name;

/// Certificates that one Data may turn out to need one after another.
const SIGNERS_MAX: usize = 4;

impl Client {
    /// Sends `request` and waits for a Data that `trust` vouches for; certificates on the way to it
    /// are fetched by their names. Callers that share `trust` must take turns.
    ///
    /// # Errors
    /// Those of [`request`](Self::request), and [`FetchError::NotVerified`].
    pub async fn request_trusted<T: Trust>(
        &self,
        request: Request,
        trust: &T,
    ) -> Result<Packet, Error> {
        let packet = self.request(request).await?;
        self.believe(&packet.data(), trust).await?;
        Ok(packet)
    }

    /// Checks that `trust` vouches for `data`; certificates on the way to it are fetched by their
    /// names.
    ///
    /// # Errors
    /// Those of [`request`](Self::request), and [`FetchError::NotVerified`].
    pub async fn believe<T: Trust>(&self, data: &Data<'_>, trust: &T) -> Result<(), Error> {
        let name = || data.name.to_name();
        let mut verified = trust.verify(data);
        for _ in 0..SIGNERS_MAX {
            let Err(onym_crypto::Error::NoCertificate(_)) = verified else { break };
            self.follow(&name(), trust).await?;
            verified = trust.verify(data);
        }
        verified.map_err(|source| Error::Fetch(FetchError::NotVerified { name: name(), source }))
    }

    /// Fetches what `trust` wants, because of the Data `name`.
    ///
    /// # Errors
    /// Those of [`request`](Self::request), and [`FetchError::NotVerified`].
    pub async fn follow<T: Trust>(&self, name: &Name, trust: &T) -> Result<(), Error> {
        let not_verified =
            |source| Error::Fetch(FetchError::NotVerified { name: name.clone(), source });
        while let Some(wanted) = trust.wanted() {
            let request = Request {
                can_be_prefix: true,
                must_be_fresh: true,
                ..Request::new(wanted.clone())
            };
            match self.request(request).await {
                Ok(packet) => trust.certificate(packet.bytes()).map_err(not_verified)?,
                Err(silence) => did_not_come(trust, name, &wanted, silence)?,
            }
        }
        Ok(())
    }
}
