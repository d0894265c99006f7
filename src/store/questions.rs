//! What gateways over one store ask the one that writes.

use async_trait::async_trait;
use tokio::sync::OwnedSemaphorePermit;

/// An answer to another gateway.
#[derive(Debug, Default)]
pub struct GatewayAnswer {
    /// The answer, as it is sent.
    pub bytes: Vec<u8>,
    /// What it takes up with whoever made it. It is released once the answer was sent, or given up.
    pub permits: Vec<OwnedSemaphorePermit>,
}

impl From<Vec<u8>> for GatewayAnswer {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, permits: Vec::new() }
    }
}

/// Answers what other gateways over the same store ask of the one that writes.
#[async_trait]
pub trait AnswerQuestions: Send + Sync {
    /// The answer to a question. Who asked may not wait for it any more. It limits by itself how many questions it
    /// answers at a time, and how many bytes their answers have.
    async fn answer_question(&self, question: Vec<u8>) -> GatewayAnswer;
}
