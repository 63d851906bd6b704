//! `azulejo serve --flight-sql`: arrays as tables for programs that speak Flight SQL.

use super::{PATIENCE, environment, error_of, runtime};
use crate::args::{FlightSqlArgs, ServeArgs};
use crate::error::{CliError, Result};
use crate::interrupt;
use crate::serve::made_up_token;
use crate::session::Session;
use azulejo::group::ObjectType;
use azulejo_sql::flight_sql::{FlightSql, Limits};
use azulejo_sql::{ArrayCatalog, TableOptions};
use datafusion::common::TableReference;
use datafusion::prelude::{SessionConfig, SessionContext};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Runs the command, until it is interrupted.
pub fn run(session: &mut Session, args: &ServeArgs) -> Result<()> {
    let tables = &args.tables;
    if !tables.listen.ip().is_loopback() && tables.tls_cert.is_none() && !tables.insecure {
        return Err(CliError::usage(format!(
            "--listen {}: other machines need --tls-cert and --tls-key; --insecure goes without",
            tables.listen
        )));
    }
    let token = match &tables.token_file {
        Some(file) => token_of(file)?,
        None => made_up_token()?,
    };
    let limits = Limits {
        time: Duration::from_secs(tables.query_time),
        queries: tables.queries,
        statement: tables.statement_size,
    };
    let mut server = FlightSql::new(&token, limits);
    if let (Some(certificate), Some(key)) = (&tables.tls_cert, &tables.tls_key) {
        server = server.tls(&read(certificate)?, &read(key)?);
    }
    if tables.writable {
        server = server.writable();
    }
    let runtime = runtime()?;
    let context = shown(session, &args.uri)?;
    let ended = runtime.block_on(async {
        let listener = TcpListener::bind(tables.listen)
            .await
            .map_err(|error| CliError::usage(format!("--listen {}: {error}", tables.listen)))?;
        let address = listener.local_addr()?;
        announce(session, tables, address, &token)?;
        tokio::select! {
            served = server.serve(context, listener) => served.map_err(error_of),
            () = interrupt::wished() => Ok(()),
        }
    });
    runtime.shutdown_timeout(PATIENCE);
    ended
}

/// Says where clients find the tables.
fn announce(
    session: &mut Session,
    args: &FlightSqlArgs,
    address: std::net::SocketAddr,
    token: &str,
) -> Result<()> {
    let scheme = match args.tls_cert {
        Some(_) => "grpc+tls",
        None => "grpc",
    };
    let url = format!("{scheme}://{address}");
    // A token that the user has already does not go where output goes.
    let shown = args.token_file.is_none().then_some(token);
    if session.output.json {
        session
            .output
            .write_json(&json!({"url": url, "token": shown}))?;
    } else {
        writeln!(session.output, "{url}")?;
        if let Some(token) = shown {
            writeln!(session.output, "authorization: Bearer {token}")?;
        }
        session.output.note(match args.writable {
            true => "Arrow Flight SQL, rows can be changed, until Ctrl-C",
            false => "Arrow Flight SQL, read-only, until Ctrl-C",
        });
    }
    session.output.flush()?;
    Ok(())
}

/// The session that has what is served as tables, and nothing else.
fn shown(session: &Session, uris: &[String]) -> Result<SessionContext> {
    let threads = session.context.threads().max(1);
    let config = SessionConfig::new()
        .with_information_schema(true)
        .with_target_partitions(threads);
    let environment = environment(session)?;
    let context = azulejo_sql::session_of_tables(&session.context, config, environment);
    for text in uris {
        let (name, uri) = named(text);
        let taken = || CliError::usage(format!("{name} is named twice; write NAME={uri}"));
        let object = session.context.object(uri).object_type()?;
        if object == Some(ObjectType::Array) {
            let table = azulejo_sql::table(&session.context.array(uri)).map_err(error_of)?;
            if context.table_exist(quoted(name)).map_err(error_of)? {
                return Err(taken());
            }
            context
                .register_table(quoted(name), table)
                .map_err(error_of)?;
        } else {
            let catalog = ArrayCatalog::open(&session.context, uri, TableOptions::new());
            let catalog = Arc::new(catalog.map_err(error_of)?);
            if context.register_catalog(name, catalog).is_some() {
                return Err(taken());
            }
        }
    }
    Ok(context)
}

/// A name that is not taken apart.
fn quoted(name: &str) -> TableReference {
    TableReference::bare(name)
}

/// `NAME=URI`, or a URI, whose last part is the name.
fn named(text: &str) -> (&str, &str) {
    match text.split_once('=') {
        Some((name, uri)) if !name.is_empty() && !name.contains(['/', '\\', ':', '.']) => {
            (name, uri)
        }
        _ => {
            let path = text.trim_end_matches(['/', '\\']);
            (path.rsplit(['/', '\\']).next().unwrap_or(path), text)
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|e| CliError::io("read", file, e))
}

/// A token is one line that a header can carry.
fn token_of(file: &Path) -> Result<String> {
    let text = String::from_utf8(read(file)?).unwrap_or_default();
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CliError::usage(format!(
            "--token-file {}: a token is one line of letters, digits and signs",
            file.display()
        )));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn names_stand_before_uris_or_are_their_ends() {
        for (text, name, uri) in [
            ("t=data/cells", "t", "data/cells"),
            ("data/cells/", "cells", "data/cells/"),
            ("s3://bucket/a=1/b", "b", "s3://bucket/a=1/b"),
            ("s3://bucket", "bucket", "s3://bucket"),
            ("cells", "cells", "cells"),
            ("./x=1", "x=1", "./x=1"),
        ] {
            assert_eq!(named(text), (name, uri), "{text}");
        }
    }
}
