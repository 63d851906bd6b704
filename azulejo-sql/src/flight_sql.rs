//! Tables for programs that speak Arrow Flight SQL: ADBC, JDBC, and what stands on them.
//!
//! A server keeps nothing between requests: tickets and prepared statements are the text of the
//! statement, with its parameters where they are bound. Whoever has the token may run queries over
//! the tables of the session, and change their rows where the server is writable. Nothing else:
//! statements that name places, change the session or make tables are refused.
//!
//! | file | what it does |
//! |---|---|
//! | `statement` | from text to plans, and which plans may run; parameters; tickets |
//! | `ingest` | rows that clients send for a table, as a plan |
//! | `running` | makes and runs plans within limits; ends what nobody waits for |
//! | `service` | the protocol |
//! | `metadata` | catalogs, schemas, tables, keys, types, what the server can do |

mod ingest;
mod metadata;
mod running;
mod service;
mod session;
mod statement;

use crate::error::Result;
use arrow_flight::flight_service_server::FlightServiceServer;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use service::Service;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Status};

/// Bytes of a message from a client.
const LONGEST_MESSAGE: usize = 64 << 20;
/// Requests of one connection at a time.
const MOST_REQUESTS: u32 = 128;
/// How often it is looked whether a quiet client is still there, and how long it has to answer.
const PULSE: Duration = Duration::from_secs(15);

/// How tables are served.
#[derive(Clone)]
pub struct FlightSql {
    /// What clients must send: `authorization: Bearer TOKEN`.
    token: Arc<str>,
    tls: Option<Identity>,
    writable: bool,
    limits: Limits,
}

/// What queries may take. Memory is bounded by the session's environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the request until the last row is taken by the client.
    pub time: Duration,
    /// Queries at a time; further ones wait, within their time.
    pub queries: usize,
    /// Bytes of a statement's text.
    pub statement: usize,
}

impl fmt::Debug for FlightSql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the token nor the key.
        f.debug_struct("FlightSql")
            .field("tls", &self.tls.is_some())
            .field("writable", &self.writable)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl FlightSql {
    /// For clients that have a token: read-only, without encryption.
    #[must_use]
    pub fn new(token: &str, limits: Limits) -> Self {
        Self {
            token: token.into(),
            tls: None,
            writable: false,
            limits,
        }
    }

    /// Over TLS, with a certificate (and those that it stands on) and its key, in PEM.
    #[must_use]
    pub fn tls(mut self, certificate: &[u8], key: &[u8]) -> Self {
        self.tls = Some(Identity::from_pem(certificate, key));
        self
    }

    /// With `INSERT`, `UPDATE`, `DELETE` and `TRUNCATE`.
    #[must_use]
    pub fn writable(mut self) -> Self {
        self.writable = true;
        self
    }

    /// Serves the tables of a session until the listener fails or the future is dropped.
    ///
    /// The session should be one of
    /// [`session_of_tables`](crate::session_of_tables): what a session can open, clients can read.
    ///
    /// # Errors
    /// Certificates and keys that are none, and errors of the listener.
    pub async fn serve(self, session: SessionContext, listener: TcpListener) -> Result<()> {
        let failed = |error| DataFusionError::External(Box::new(error));
        let service = Service::new(session, self.writable, self.limits)?;
        let service = FlightServiceServer::new(service).max_decoding_message_size(LONGEST_MESSAGE);
        let token = self.token;
        let checked = InterceptedService::new(service, move |request| check(&token, request));
        let mut server = Server::builder()
            .http2_keepalive_interval(Some(PULSE))
            .http2_keepalive_timeout(Some(PULSE))
            .max_concurrent_streams(MOST_REQUESTS)
            .tcp_nodelay(true);
        if let Some(identity) = self.tls {
            let tls = ServerTlsConfig::new().identity(identity).timeout(PULSE);
            server = server.tls_config(tls).map_err(|error| {
                DataFusionError::Configuration(format!("the certificate or its key: {error:?}"))
            })?;
        }
        server
            .add_service(checked)
            .serve_with_incoming(TcpListenerStream::new(listener))
            .await
            .map_err(failed)
    }
}

/// Lets requests pass that bring the token.
fn check(token: &str, request: Request<()>) -> std::result::Result<Request<()>, Status> {
    let header = request.metadata().get("authorization");
    let sent = header.and_then(|value| value.as_bytes().split_at_checked(7));
    // In a time that does not tell where the first difference is.
    let fits = sent.is_some_and(|(scheme, sent)| {
        scheme.eq_ignore_ascii_case(b"bearer ") && bool::from(sent.ct_eq(token.as_bytes()))
    });
    match fits {
        true => Ok(request),
        false => Err(Status::unauthenticated(
            "this server wants its token: authorization: Bearer TOKEN",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_passes() {
        let with = |header: Option<&'static str>| {
            let mut request = Request::new(());
            if let Some(header) = header {
                let header = tonic::metadata::MetadataValue::from_static(header);
                request.metadata_mut().insert("authorization", header);
            }
            check("abc", request).is_ok()
        };
        assert!(with(Some("Bearer abc")) && with(Some("bearer abc")));
        for wrong in [
            None,
            Some(""),
            Some("Bearer "),
            Some("Bearer ab"),
            Some("Bearer abcd"),
        ] {
            assert!(!with(wrong), "{wrong:?}");
        }
        assert!(!with(Some("Basic abc")) && !with(Some("abc")));
        let shown = format!(
            "{:?}",
            FlightSql::new(
                "s3cret",
                Limits {
                    time: PULSE,
                    queries: 1,
                    statement: 1,
                }
            )
        );
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
