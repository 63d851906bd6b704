//! The engine's conformance suite against each server.

use super::{BUCKET, Stage, Tally, context_with, s3_context, servers};
use crate::{Outcome, reference};
use azulejo::Context;
use azulejo::storage::{Uri, conformance};
use std::process::Command;

/// More than a server gives in one answer.
const PAGED: usize = 1_100;

fn suite(tally: &mut Tally, name: &str, context: &Context, uri: &str) {
    let begun = std::time::Instant::now();
    let location = |part: &str| {
        let uri = Uri::parse(&format!("{uri}/{part}")).map_err(|e| e.to_string())?;
        context.locate(&uri).map_err(|e| e.to_string())
    };
    tally.check(&format!("{name}, suite"), || {
        let root = location("suite")?;
        conformance::check(&*root.storage, &root.path);
        Ok(())
    });
    tally.check(&format!("{name}, pages"), || {
        let root = location("pages")?;
        conformance::check_pages(&*root.storage, &root.path, PAGED);
        Ok(())
    });
    println!("  {name}: {:.0} s", begun.elapsed().as_secs_f64());
}

/// Runs the suite on every server.
pub fn run(stage: &mut Stage, tally: &mut Tally) -> Outcome {
    // s3s-fs keeps keys as paths of files, with empty folders that stay: moto is the S3 that is
    // held against the suite.
    let moto = servers::moto(stage.logs())?;
    let create = bare_put(&format!("{}", moto.address), &format!("/{BUCKET}"));
    tally.check("moto, bucket", || create);
    suite(
        tally,
        "moto",
        &s3_context(moto.address, &[])?,
        &super::s3_uri("conformance"),
    );
    drop(moto);

    match servers::azurite(stage.logs())? {
        None => println!("  azurite: SKIPPED, npm is not there"),
        Some(azurite) => {
            let script = crate::root().join("xtask/python/cloud_azure.py");
            reference::run(
                Command::new(reference::python()?)
                    .arg(script)
                    .arg(azurite.address.to_string())
                    .args([servers::AZURE_ACCOUNT, servers::AZURE_KEY, BUCKET]),
            )?;
            let endpoint = format!("http://{}/{}", azurite.address, servers::AZURE_ACCOUNT);
            let context = context_with(&[
                ("vfs.azure.storage_account_name", servers::AZURE_ACCOUNT),
                ("vfs.azure.storage_account_key", servers::AZURE_KEY),
                ("vfs.azure.blob_endpoint", endpoint.as_str()),
                ("vfs.azure.request_timeout_ms", "600000"),
            ])?;
            suite(
                tally,
                "azurite",
                &context,
                &format!("azure://{BUCKET}/conformance"),
            );
        }
    }
    println!(
        "  gcs: SKIPPED, no emulator on PyPI or npm lists buckets as Google's XML interface does"
    );
    Ok(())
}

/// A `PUT` without a body or a signature.
fn bare_put(host: &str, path: &str) -> Outcome {
    use super::http1::Message;
    use std::io::{BufReader, Write};
    let put = || -> std::io::Result<u16> {
        let stream = std::net::TcpStream::connect(host)?;
        let mut writer = stream.try_clone()?;
        writer.write_all(
            format!("PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n").as_bytes(),
        )?;
        Ok(Message::read_head(&mut BufReader::new(stream))?
            .unwrap_or_default()
            .status())
    };
    match put() {
        Ok(200) => Ok(()),
        Ok(status) => Err(format!("PUT {path}: status {status}")),
        Err(error) => Err(format!("PUT {path}: {error}")),
    }
}
