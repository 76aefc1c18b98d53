//! The configuration: file, then raw, then checked.

mod model;
mod secret;

pub use model::{
    AmocrmTarget, Condition, Config, DealTask, FieldTemplate, HandMade, Language, Listener, Move, NoteTask, NoticeTask,
    Route, ShopApi, Source, SourceKind, Target, TargetKind, Task, TaskKind,
};
pub use secret::{LabelledSecret, Secret};
