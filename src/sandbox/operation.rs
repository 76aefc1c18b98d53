//! The things that can be asked of the emulated systems, by stable names.

use std::fmt;
use std::str::FromStr;

/// One kind of call; faults are chosen and calls counted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum Operation {
    /// Reads the account.
    AccountGet,
    /// Lists pipelines.
    PipelineList,
    /// Lists users.
    UserList,
    /// Lists the custom fields of leads or of contacts.
    FieldList,
    /// Makes a custom field of leads.
    FieldCreate,
    /// Lists or searches leads.
    LeadSearch,
    /// Reads one lead.
    LeadGet,
    /// Makes leads.
    LeadCreate,
    /// Changes leads.
    LeadUpdate,
    /// Links contacts to a lead.
    LeadLink,
    /// Lists or searches contacts.
    ContactSearch,
    /// Reads one contact.
    ContactGet,
    /// Makes contacts.
    ContactCreate,
    /// Changes a contact.
    ContactUpdate,
    /// Lists a lead's notes.
    NoteList,
    /// Makes notes.
    NoteCreate,
    /// Lists tasks.
    TaskList,
    /// Makes tasks.
    TaskCreate,
    /// Asks the shop for an order.
    OrderGet,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::AccountGet,
        Self::PipelineList,
        Self::UserList,
        Self::FieldList,
        Self::FieldCreate,
        Self::LeadSearch,
        Self::LeadGet,
        Self::LeadCreate,
        Self::LeadUpdate,
        Self::LeadLink,
        Self::ContactSearch,
        Self::ContactGet,
        Self::ContactCreate,
        Self::ContactUpdate,
        Self::NoteList,
        Self::NoteCreate,
        Self::TaskList,
        Self::TaskCreate,
        Self::OrderGet,
    ];

    /// The stable name: `lead.create`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccountGet => "account.get",
            Self::PipelineList => "pipeline.list",
            Self::UserList => "user.list",
            Self::FieldList => "field.list",
            Self::FieldCreate => "field.create",
            Self::LeadSearch => "lead.search",
            Self::LeadGet => "lead.get",
            Self::LeadCreate => "lead.create",
            Self::LeadUpdate => "lead.update",
            Self::LeadLink => "lead.link",
            Self::ContactSearch => "contact.search",
            Self::ContactGet => "contact.get",
            Self::ContactCreate => "contact.create",
            Self::ContactUpdate => "contact.update",
            Self::NoteList => "note.list",
            Self::NoteCreate => "note.create",
            Self::TaskList => "task.list",
            Self::TaskCreate => "task.create",
            Self::OrderGet => "order.get",
        }
    }

    /// Whether the shop is asked, not amoCRM.
    pub(super) fn is_of_shop(self) -> bool {
        self == Self::OrderGet
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that no operation has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown operation `{0}`")]
pub struct UnknownOperation(String);

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(name: &str) -> Result<Self, UnknownOperation> {
        Self::ALL.into_iter().find(|op| op.as_str() == name).ok_or_else(|| UnknownOperation(name.to_owned()))
    }
}

impl TryFrom<String> for Operation {
    type Error = UnknownOperation;

    fn try_from(name: String) -> Result<Self, UnknownOperation> {
        name.parse()
    }
}
