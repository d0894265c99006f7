use super::NewsRule;
use crate::rules::Rule;
use tidegate_core::model::NoiseClass;

pub(super) const RULE: NewsRule = NewsRule {
    rule: Rule { name: "ids", sentence: "which entry it is, which is judged elsewhere" },
    class: NoiseClass::Ids,
    is_noise: |field, _| IDS.contains(&field.name),
};

const IDS: [&str; 6] = ["guid", "id", "rdf:about", "yt:videoId", "yt:channelId", "post-id"];
