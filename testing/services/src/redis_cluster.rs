//! A Redis Cluster of three nodes.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::redis::{RedisProgram, RedisServer};

const SLOTS: usize = 16_384;

/// Three masters without replicas that share the slots evenly.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts the nodes, joins them, and waits until each of them says that the cluster is well.
    ///
    /// # Errors
    /// If a node does not start or they do not find each other within twenty seconds.
    pub fn start(program: RedisProgram) -> Result<Self> {
        let settings = [
            "--save",
            "",
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "2000",
        ];
        let nodes = (0..3)
            .map(|_| RedisServer::start_with(program, &settings))
            .collect::<Result<Vec<_>>>()?;
        let share = SLOTS.div_ceil(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let slots: Vec<String> = (index * share..((index + 1) * share).min(SLOTS))
                .map(|slot| slot.to_string())
                .collect();
            // ADDSLOTSRANGE came with 7.0; this works with 6.2 too.
            let mut words = vec!["CLUSTER", "ADDSLOTS"];
            words.extend(slots.iter().map(String::as_str));
            node.command(&words)?;
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        }
        for node in &nodes[1..] {
            node.command(&["CLUSTER", "MEET", "127.0.0.1", &nodes[0].port().to_string()])?;
        }
        let cluster = Self { nodes };
        cluster.wait_until_well()?;
        Ok(cluster)
    }

    fn wait_until_well(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            let mut well = true;
            for node in &self.nodes {
                let info = node.command(&["CLUSTER", "INFO"])?;
                well &= info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
            }
            if well {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("the nodes of the cluster did not find each other within twenty seconds")
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The addresses of all nodes.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }
}
