//! Software bill of materials as JSON of `CycloneDX` 1.6.

use anyhow::Context as _;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use crate::archive::sha256;
use crate::dependencies::Package;

/// The bill of a program made of `packages`, the program's own first.
pub(crate) fn cyclonedx(packages: &[Package], target: &str, epoch: u64) -> anyhow::Result<String> {
    let (program, others) = packages.split_first().context("found no package, expected that of the program")?;
    let time = DateTime::from_timestamp(i64::try_from(epoch)?, 0).context("found a time stamp beyond all calendars")?;
    let dependencies: Vec<Value> = packages
        .iter()
        .map(|package| {
            let uses: Vec<String> = package.uses.iter().map(|&index| packages[index].purl()).collect();
            json!({ "ref": package.purl(), "dependsOn": uses })
        })
        .collect();
    let mut main = component(program, "application");
    main["name"] = "hopedgn".into();
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time.to_rfc3339_opts(SecondsFormat::Secs, true),
            "tools": { "components": [
                { "type": "application", "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
            ] },
            "component": main,
            "properties": [{ "name": "hopedgn:target", "value": target }],
        },
        "components": others.iter().map(|package| component(package, "library")).collect::<Vec<_>>(),
        "dependencies": dependencies,
    });
    // The number names the content, so that two bills of the same content have the same.
    document["serialNumber"] = format!("urn:uuid:{}", uuid(&sha256(document.to_string().as_bytes()))).into();
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn component(package: &Package, kind: &str) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": package.purl(),
        "name": package.name,
        "version": package.version,
        "purl": package.purl(),
        "licenses": [{ "expression": package.license }],
    });
    if let Some(checksum) = &package.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

/// A UUID of version 8 (custom) from hexadecimal digits.
fn uuid(digits: &str) -> String {
    let parts = [
        &digits[..8],
        &digits[8..12],
        &format!("8{}", &digits[13..16]),
        &format!("8{}", &digits[17..20]),
        &digits[20..32],
    ];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, checksum: Option<&str>, uses: &[usize]) -> Package {
        Package {
            name: name.into(),
            version: "1.2.3".into(),
            license: "MIT OR Apache-2.0".into(),
            repository: Some("https://example.org/x".into()),
            folder: "nowhere".into(),
            checksum: checksum.map(str::to_owned),
            uses: uses.to_vec(),
        }
    }

    #[test]
    fn bill_lists_components_with_licence_checksum_and_dependencies() {
        let packages = [package("hopedgn-cli", None, &[1]), package("serde", Some("abc"), &[])];
        let text = cyclonedx(&packages, "x86_64-unknown-linux-gnu", 1_700_000_000).unwrap();
        let bill: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
        assert_eq!(bill["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
        assert_eq!(
            (&bill["metadata"]["component"]["name"], &bill["metadata"]["component"]["type"]),
            (&"hopedgn".into(), &"application".into())
        );
        let serde = &bill["components"][0];
        assert_eq!((&serde["purl"], &serde["hashes"][0]["content"]), (&"pkg:cargo/serde@1.2.3".into(), &"abc".into()));
        assert_eq!(serde["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(
            bill["dependencies"][0],
            json!({ "ref": "pkg:cargo/hopedgn-cli@1.2.3?vcs_url=git%2Bhttps://example.org/x", "dependsOn": ["pkg:cargo/serde@1.2.3"] })
        );
        let number = bill["serialNumber"].as_str().unwrap();
        assert!(
            number.starts_with("urn:uuid:") && number.len() == 9 + 36 && number.split('-').count() == 5,
            "{number}"
        );
        assert_eq!(text, cyclonedx(&packages, "x86_64-unknown-linux-gnu", 1_700_000_000).unwrap());
    }
}
