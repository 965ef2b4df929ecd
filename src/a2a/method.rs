//! The methods of both versions, by both of their names.

use super::version::Version;
use crate::contract::distance;

/// What a request asks for, whatever its version calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    SendMessage,
    StreamMessage,
    GetTask,
    ListTasks,
    CancelTask,
    Subscribe,
    SetPush,
    GetPush,
    ListPush,
    DeletePush,
    ExtendedCard,
    Embeddings,
    Rerank,
    Chat,
}

impl Method {
    pub const ALL: [Self; 14] = [
        Self::SendMessage,
        Self::StreamMessage,
        Self::GetTask,
        Self::ListTasks,
        Self::CancelTask,
        Self::Subscribe,
        Self::SetPush,
        Self::GetPush,
        Self::ListPush,
        Self::DeletePush,
        Self::ExtendedCard,
        Self::Embeddings,
        Self::Rerank,
        Self::Chat,
    ];

    /// Its name in a version that has it. The `ai/` methods are ours, and stand with the slash names.
    pub fn name(self, version: Version) -> Option<&'static str> {
        let (slash, pascal) = match self {
            Self::SendMessage => (Some("message/send"), Some("SendMessage")),
            Self::StreamMessage => (Some("message/stream"), Some("SendStreamingMessage")),
            Self::GetTask => (Some("tasks/get"), Some("GetTask")),
            Self::ListTasks => (None, Some("ListTasks")),
            Self::CancelTask => (Some("tasks/cancel"), Some("CancelTask")),
            Self::Subscribe => (Some("tasks/resubscribe"), Some("SubscribeToTask")),
            Self::SetPush => {
                (Some("tasks/pushNotificationConfig/set"), Some("CreateTaskPushNotificationConfig"))
            }
            Self::GetPush => {
                (Some("tasks/pushNotificationConfig/get"), Some("GetTaskPushNotificationConfig"))
            }
            Self::ListPush => {
                (Some("tasks/pushNotificationConfig/list"), Some("ListTaskPushNotificationConfigs"))
            }
            Self::DeletePush => {
                (Some("tasks/pushNotificationConfig/delete"), Some("DeleteTaskPushNotificationConfig"))
            }
            Self::ExtendedCard => (Some("agent/getAuthenticatedExtendedCard"), Some("GetExtendedAgentCard")),
            Self::Embeddings => (Some("ai/embeddings"), None),
            Self::Rerank => (Some("ai/rerank"), None),
            Self::Chat => (Some("ai/chat"), None),
        };
        match version {
            Version::V0_3 => slash,
            Version::V1_0 => pascal,
        }
    }

    /// The method of this name, and the version whose name it is: that is how official clients say which one they
    /// speak.
    pub fn parse(name: &str) -> Option<(Self, Version)> {
        Self::named().find(|(known, _, _)| *known == name).map(|(_, method, version)| (method, version))
    }

    /// The name that was probably meant.
    pub(super) fn nearest(name: &str) -> Option<&'static str> {
        const EDITS_MAX: usize = 4;
        // A long name is near to nothing, and not worth the work.
        if name.len() > 64 {
            return None;
        }
        Self::named()
            .map(|(known, _, _)| (distance(name, known), known))
            .min_by_key(|(edits, _)| *edits)
            .filter(|(edits, _)| *edits <= EDITS_MAX)
            .map(|(_, known)| known)
    }

    /// Does it go to a model gateway?
    pub fn is_ai(self) -> bool {
        matches!(self, Self::Embeddings | Self::Rerank | Self::Chat)
    }

    /// Is a stream its only answer? `tasks/resubscribe` also has a plain one.
    pub fn only_streams(self, version: Version) -> bool {
        match self {
            Self::StreamMessage => true,
            Self::Subscribe => version == Version::V1_0,
            _ => false,
        }
    }

    fn named() -> impl Iterator<Item = (&'static str, Self, Version)> {
        Version::ALL.into_iter().flat_map(|version| {
            Self::ALL.into_iter().filter_map(move |method| Some((method.name(version)?, method, version)))
        })
    }
}
