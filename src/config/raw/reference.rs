//! Secrets stand outside the file; the file says where.
//!
//! `{ env = "NAME" }`, `{ file = "path" }` or `{ credential = "name" }`, the
//! last below `$CREDENTIALS_DIRECTORY` (systemd's `LoadCredential=`). What
//! stands between the quotes is never repeated in a problem, because people
//! paste the secret itself there.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use crate::config::raw::{Reported, Secrets, Section, Value};
use crate::config::{LabelledSecret, Secret};

/// A longer file is not a secret; an amoCRM token, the longest we know, has about 1,000 bytes.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// What to write in place of a secret.
const HOW: &str =
    "put it outside this file and write { credential = \"name\" }, { file = \"path\" } or { env = \"NAME\" }";

impl Value<'_> {
    /// The secret that a reference leads to.
    pub(in crate::config) fn secret(&self) -> Result<Secret, Reported> {
        self.refuse_plain()?;
        let mut section = self.section()?;
        let secret = referenced(&mut section);
        section.finish()?;
        secret
    }

    /// A reference with a label.
    pub(in crate::config) fn labelled_secret(&self) -> Result<LabelledSecret, Reported> {
        self.refuse_plain()?;
        let mut section = self.item()?;
        let label = section.required("label", Value::name);
        let secret = referenced(&mut section);
        section.finish()?;
        Ok(LabelledSecret { label: label?, secret: secret? })
    }

    fn refuse_plain(&self) -> Result<(), Reported> {
        if self.is_table() {
            return Ok(());
        }
        Err(self.refuse_with("must be a reference, not the secret itself", Some(HOW.to_owned())))
    }
}

/// Takes the one key that says where.
fn referenced(section: &mut Section<'_>) -> Result<Secret, Reported> {
    let from = [
        section.optional("credential", from_credential),
        section.optional("file", from_file),
        section.optional("env", from_environment),
    ];
    let mut given = from.into_iter().filter_map(Result::transpose);
    match (given.next(), given.next()) {
        (Some(secret), None) => secret,
        _ => Err(section.refuse("must say once where the secret is", Some(HOW.to_owned()))),
    }
}

fn from_environment(value: &Value<'_>) -> Result<Secret, Reported> {
    let name = value.text()?;
    if value.file.secrets() == Secrets::Unread {
        return Ok(Secret::unread());
    }
    let text = value.file.variable(name);
    checked(value, text.ok_or_else(|| value.refuse("names a variable that is not set"))?)
}

fn from_credential(value: &Value<'_>) -> Result<Secret, Reported> {
    let name = value.text()?;
    if Path::new(name).file_name() != Some(OsStr::new(name)) {
        return Err(value.refuse("must be the name of a credential, not a path"));
    }
    if value.file.secrets() == Secrets::Unread {
        return Ok(Secret::unread());
    }
    let folder = value.file.variable("CREDENTIALS_DIRECTORY").ok_or_else(|| {
        let hint = "add LoadCredential=<name>:<path> to the unit, or set it to a folder of secrets";
        value.refuse_with("needs $CREDENTIALS_DIRECTORY, which is not set", Some(hint.to_owned()))
    })?;
    // No check of the mode: systemd guards the folder, and its access lists show as group bits.
    let opened = fs::File::open(Path::new(&folder).join(name));
    read(value, opened.map_err(|e| unreadable(value, &e))?)
}

fn from_file(value: &Value<'_>) -> Result<Secret, Reported> {
    let path = value.path()?;
    if value.file.secrets() == Secrets::Unread {
        return Ok(Secret::unread());
    }
    let opened = fs::File::open(&path).map_err(|e| unreadable(value, &e))?;
    if is_open_to_others(&opened).map_err(|e| unreadable(value, &e))? {
        let hint = format!("chmod 600 {}", path.display());
        return Err(value.refuse_with("names a file that is open to its group or to all", Some(hint)));
    }
    read(value, opened)
}

/// Looks at the opened file, not at its path, which may have changed meanwhile.
#[cfg(unix)]
fn is_open_to_others(file: &fs::File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata()?.permissions().mode() & 0o077 != 0)
}

/// Elsewhere the mode says nothing.
#[cfg(not(unix))]
fn is_open_to_others(_: &fs::File) -> io::Result<bool> {
    Ok(false)
}

/// Reads it to the end and takes one line end off.
fn read(value: &Value<'_>, file: fs::File) -> Result<Secret, Reported> {
    let mut text = String::new();
    let length = file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text).map_err(|e| unreadable(value, &e))?;
    if u64::try_from(length).is_ok_and(|length| length > SECRET_BYTES_MAX) {
        return Err(value.refuse("names a file that is too long for a secret"));
    }
    let line = text.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let length = line.map_or(text.len(), str::len);
    text.truncate(length);
    checked(value, text)
}

/// Blanks are refused: no sender has them in a secret, and a pasted one costs hours.
fn checked(value: &Value<'_>, text: String) -> Result<Secret, Reported> {
    if text.is_empty() {
        Err(value.refuse("leads to an empty secret"))
    } else if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        Err(value.refuse("leads to a secret with a blank, a second line or a control character in it"))
    } else {
        Ok(Secret::new(text))
    }
}

fn unreadable(value: &Value<'_>, error: &io::Error) -> Reported {
    value.refuse(format_args!("names what cannot be read: {error}"))
}
