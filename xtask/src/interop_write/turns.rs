//! Everything else that either engine does to an array.

use super::peer::{self, Peer, hex};
use super::random;
use super::session::Session;
use crate::Outcome;
use azulejo::consolidate::{FragmentOptions, Mode, VacuumOptions};
use azulejo::format::schema::{Attribute, SchemaEvolution};
use std::sync::Arc;

impl Session {
    /// One step by either engine.
    pub fn turn(&mut self, peer: &mut Peer) -> Outcome {
        let theirs = self.rng.chance(50);
        let who = if theirs { "theirs" } else { "ours" };
        let text = |e: azulejo::Error| e.to_string();
        let first = self.times.is_empty();
        match if first { 0 } else { self.rng.below(12) } {
            0..5 => return self.write(theirs.then_some(peer)),
            5 if !self.schema.is_dense() && self.schema.version.has_deletes() => {
                let chosen = if theirs {
                    self.condition()
                        .map(|(condition, tree)| (condition, Some(tree)))
                } else {
                    self.conditions().map(|condition| (condition, None))
                };
                let Some((condition, tree)) = chosen else {
                    return Ok(());
                };
                let time = self.tick();
                self.log
                    .push(format!("{who} delete {condition:?} at {time}"));
                let fields = condition.fields().into_iter();
                self.deleted_by.extend(fields.map(|f| f.name.clone()));
                if let Some(tree) = tree {
                    let mut command = self.command("delete");
                    command["tree"] = tree;
                    command["t"] = time.into();
                    if let Err(refused) = peer.ask(&command)? {
                        self.log.push(format!("refused: {refused}"));
                        return Ok(());
                    }
                } else {
                    self.context
                        .array(&self.uri)
                        .delete_cells(&condition, Some(time))
                        .map_err(text)?;
                }
                self.model.forget();
            }
            6 if self.key.is_none() => return self.evolve(theirs.then_some(peer), who),
            7..9 => {
                let purge = self.rng.chance(30);
                self.log.push(format!(
                    "{who} consolidate{}",
                    if purge { " purging" } else { "" }
                ));
                if theirs {
                    let mut command = self.command("consolidate");
                    command["mode"] = "fragments".into();
                    command["purge"] = if purge { "true" } else { "false" }.into();
                    if let Err(refused) = peer.ask(&command)? {
                        self.log.push(format!("refused: {refused}"));
                    }
                } else {
                    let options = FragmentOptions::new().purge_deleted_cells(purge);
                    self.ours = true;
                    self.context
                        .array(&self.uri)
                        .consolidate(&options)
                        .map_err(text)?;
                }
            }
            9 => {
                let mode = *self.rng.pick(&[Mode::Commits, Mode::FragmentMetadata]);
                self.log.push(format!("{who} consolidate {}", mode.name()));
                if theirs {
                    let mut command = self.command("consolidate");
                    command["mode"] = reference_name(mode).into();
                    if let Err(refused) = peer.ask(&command)? {
                        self.log.push(format!("refused: {refused}"));
                    }
                } else if mode == Mode::Commits {
                    if !self.schema.version.has_subdirectories() {
                        return Ok(());
                    }
                    self.context
                        .array(&self.uri)
                        .consolidate_commits()
                        .map_err(text)?;
                } else {
                    self.context
                        .array(&self.uri)
                        .consolidate_fragment_metadata()
                        .map_err(text)?;
                }
            }
            _ => {
                let mode = *self.rng.pick(&[
                    Mode::Fragments,
                    Mode::Fragments,
                    Mode::Commits,
                    Mode::FragmentMetadata,
                ]);
                self.log.push(format!("{who} vacuum {}", mode.name()));
                if theirs {
                    let mut command = self.command("vacuum");
                    command["mode"] = reference_name(mode).into();
                    if let Err(refused) = peer.ask(&command)? {
                        self.log.push(format!("refused: {refused}"));
                    }
                } else {
                    self.context
                        .array(&self.uri)
                        .vacuum(mode, VacuumOptions::default())
                        .map_err(text)?;
                }
            }
        }
        // Times within a fragment that took the place of others may show other cells than before.
        self.model.settle();
        Ok(())
    }

    fn evolve(&mut self, peer: Option<&mut Peer>, who: &str) -> Outcome {
        let time = self.tick();
        let first = self.schema.attributes.first();
        let is_needed = first.is_some_and(|first| self.deleted_by.contains(&first.name));
        let drop = self.schema.attributes.len() > 1 && self.rng.chance(40) && !is_needed;
        let mut evolution = SchemaEvolution::default();
        let mut command = self.command("evolve");
        command["t"] = time.into();
        if drop {
            let name = self.schema.attributes[0].name.clone();
            self.original.retain(|n| *n != name);
            command["drop"] = name.clone().into();
            evolution.drop_attributes.push(name);
        } else {
            let name = format!("n{time}");
            let mut attribute = random::attribute(&mut self.rng, &name);
            attribute = Attribute {
                filters: Default::default(),
                ..attribute
            };
            let mut scratch = (*self.schema).clone();
            scratch.attributes.push(attribute.clone());
            let mut field = peer::field_json(&scratch, &name);
            field["fill"] = hex(&attribute.fill_value).into();
            command["add"] = field;
            evolution.add_attributes.push(attribute);
        }
        self.log.push(format!(
            "{who} evolve, {} at {time}",
            if drop { "drop" } else { "add" }
        ));
        match peer {
            Some(peer) => {
                if let Err(refused) = peer.ask(&command)? {
                    self.log.push(format!("refused: {refused}"));
                }
            }
            None => {
                self.context
                    .array(&self.uri)
                    .evolve(&evolution, Some(time))
                    .map_err(|e| e.to_string())?;
            }
        }
        self.model.forget();
        self.schema = Arc::clone(self.open(time)?.schema());
        Ok(())
    }
}

/// What the reference calls a mode.
fn reference_name(mode: Mode) -> &'static str {
    match mode {
        Mode::FragmentMetadata => "fragment_meta",
        Mode::Commits => "commits",
        _ => "fragments",
    }
}
