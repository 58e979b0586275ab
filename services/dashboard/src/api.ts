// Generated from docs/openapi.json by `npm run types`; a test compares. Not to be edited.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A site that asks to be served, with the endpoint that it registers. */
        AccessRequest: {
            number: number;
            site: string;
            organisation: string;
            contact: string;
            place: string;
            multicast_interface: string;
            access_rate_bps: number | null;
            feeds: string[];
            note: string;
            peer: string;
            asked_at: string | null;
            state: components["schemas"]["RequestState"];
            decided_at: string | null;
            decided_by: string;
            answer: string;
            /** @description The user that its approval made, while that one is kept. */
            invites: string | null;
        };
        /** @description A program's right to use the API until it expires or is revoked; without its secret. */
        AccessToken: {
            number: number;
            /** @description What it is for, in the words of whoever made it. */
            name: string;
            role: components["schemas"]["Role"];
            scopes: components["schemas"]["Scope"][];
            site: string | null;
            /** Format: date-time */
            created_at: string;
            created_by: string;
            /** Format: date-time */
            expires_at: string;
            revoked_at: string | null;
        };
        /** @description An access token with its text, which is shown only here. */
        AccessTokenMade: {
            number: number;
            /** @description What it is for, in the words of whoever made it. */
            name: string;
            role: components["schemas"]["Role"];
            scopes: components["schemas"]["Scope"][];
            site: string | null;
            /** Format: date-time */
            created_at: string;
            created_by: string;
            /** Format: date-time */
            expires_at: string;
            revoked_at: string | null;
            token: string;
        };
        /** @description An access token to make. */
        AccessTokenNew: {
            name: string;
            role: components["schemas"]["Role"];
            /** @description Fewer than the role has; all of the role's if left out. */
            scopes?: components["schemas"]["Scope"][] | null;
            site?: string | null;
            /** @default 365 */
            days?: number;
        };
        /** @description What a site's own rules could not do with a product. */
        ActionFailed: {
            /** @description The file and the line. */
            rule: string;
            /** @description Of the program, or minus the signal that ended it; null if none ended. */
            exit: number | null;
            last_error: string;
            product: string;
            sequence: number;
            epoch: string | null;
            /** @description For how many products of the feed rules failed; this one counts. */
            count: number;
            others: number[];
        };
        /** @description A condition from its first look to its end, and the silence that stops notifications, if any. */
        Alarm: {
            alarm: number;
            kind: components["schemas"]["AlarmKind"];
            feed: string | null;
            site: string | null;
            /** @description What else it is about, a circuit for one. */
            subject: string;
            sentence: string;
            next_step: string;
            /** Format: date-time */
            since: string;
            ended_at: string | null;
            /** @description When receivers were told; null: a silence covers it, or nobody was told yet. */
            told_at: string | null;
            /** @description The worst that it has been. */
            severity: components["schemas"]["Severity"];
            silenced_until: string | null;
            silence: components["schemas"]["Silence"] | null;
        };
        /**
         * @description What an alarm is about.
         * @enum {string}
         */
        AlarmKind: "objective" | "silence" | "site-down" | "site-disk" | "action" | "stalled" | "group-loss" | "heartbeat" | "site-violation" | "peer-violation" | "clock" | "credential" | "hub-disk" | "retention" | "circuit" | "prediction" | "damaged-data" | "internal-fault";
        /** @description A page of alarms. */
        AlarmPage: {
            items: components["schemas"]["Alarm"][];
            /** @description The cursor of the next page; null: there is none. */
            next: number | null;
        };
        /** @description The process answers. */
        Alive: {
            status: string;
        };
        /** @description Which feeds the site may take; what it asked for, if left out. */
        Approval: {
            allow?: string[] | null;
            /** @default  */
            answer?: string;
        };
        /** @description What came into a feed in one step. */
        Arrivals: {
            /** Format: date-time */
            at: string;
            products: number;
            bytes: number;
            peak_1s_bytes: number;
        };
        /** @description Where circuits end at a site: a port or an STP, and the VLANs usable there (first, last). */
        Attachment: {
            port: string;
            first_vlan: number;
            last_vlan: number;
        };
        /** @description Port or STP where circuits end, and the usable VLANs. */
        AttachmentShape: {
            port: string;
            first_vlan: number;
            last_vlan: number;
        };
        /** @description How many latencies lie between two bounds. */
        Bin: {
            from_ms: number;
            to_ms: number;
            count: number;
        };
        /** @description One transport as the scheduler judged it. */
        Candidate: {
            transport: components["schemas"]["Transport"];
            feasible: boolean;
            reason: string;
            /** @description Mean egress of the hub for this feed. */
            egress_bps: number | null;
            peak_egress_bps: number | null;
            predicted_p50_ms: number | null;
            predicted_p95_ms: number | null;
            predicted_p99_ms: number | null;
            predicted_max_ms: number | null;
            /** @description Rates of circuits over the time that they would be up. */
            reserved_bps: number | null;
            /** @description What egress, circuits and unwanted bytes cost, as bits per second of egress. */
            price_bps: number | null;
            /** @description The price, and what it costs that the objective is missed; the lowest is best. */
            score_bps: number | null;
        };
        /**
         * @description What happens to bytes beyond the rate.
         * @enum {string}
         */
        Cap: "hard" | "soft";
        /**
         * @description What keeps a product from a site or from its local software, as a word for programs; names are promises.
         * @enum {string}
         */
        Cause: "not-subscribed" | "filtered" | "denied" | "queued-behind" | "site-down" | "left-the-log" | "too-old" | "digest-mismatch" | "action-failed" | "disk";
        /** @description One change; `before` and `after` hold what differs, or the whole of what was added or removed. */
        Change: {
            number: number;
            /** Format: date-time */
            at: string;
            who: string;
            role: string | null;
            peer: string;
            action: string;
            kind: string;
            subject: string;
            before: {
                [key: string]: unknown;
            } | null;
            after: {
                [key: string]: unknown;
            } | null;
        };
        /** @description A page of changes. */
        ChangePage: {
            items: components["schemas"]["Change"][];
            /** @description The cursor of the next page; null: there is none. */
            next: number | null;
        };
        /** @description A rate-guaranteed path: what was reserved, what it was measured to carry, what is used of it. */
        Circuit: {
            circuit: number;
            state: components["schemas"]["CircuitState"];
            /** @description Why it is in this state, in a sentence. */
            reason: string;
            shape: components["schemas"]["CircuitShape"];
            sites: string[];
            request_id: string;
            /** @description The hub's first. */
            ends: components["schemas"]["End"][];
            rate_out_bps: number;
            rate_in_bps: number;
            /** Format: date-time */
            begin: string;
            /** @description Null: until it is cancelled. */
            end: string | null;
            driver: components["schemas"]["CircuitDriver"];
            replication: components["schemas"]["Replication"];
            group: string | null;
            cap: components["schemas"]["Cap"];
            /** @description What is sent into it at most, as a share of its rate. */
            shaped_share: number;
            burst_bytes: number | null;
            description: string;
            /** @description Under which somebody else made it. */
            ticket: string;
            requested_by: string;
            since: string | null;
            created_at: string | null;
            /** @constant */
            layer: "ethernet-frame";
            /** @description By the site that gets least; null until it was measured. */
            measured_out_bps: number | null;
            measured_in_bps: number | null;
            measured_at: string | null;
            used_out_bps: number;
            used_in_bps: number;
            measurements: components["schemas"]["Measurement"][];
        };
        /** @description What became of a request; `done` is false for a dry run, and for a circuit that was made before. */
        CircuitAnswered: {
            circuit: number;
            state: components["schemas"]["CircuitState"];
            /** @description Why it is in this state, in a sentence. */
            reason: string;
            shape: components["schemas"]["CircuitShape"];
            sites: string[];
            request_id: string;
            /** @description The hub's first. */
            ends: components["schemas"]["End"][];
            rate_out_bps: number;
            rate_in_bps: number;
            /** Format: date-time */
            begin: string;
            /** @description Null: until it is cancelled. */
            end: string | null;
            driver: components["schemas"]["CircuitDriver"];
            replication: components["schemas"]["Replication"];
            group: string | null;
            cap: components["schemas"]["Cap"];
            /** @description What is sent into it at most, as a share of its rate. */
            shaped_share: number;
            burst_bytes: number | null;
            description: string;
            /** @description Under which somebody else made it. */
            ticket: string;
            requested_by: string;
            since: string | null;
            created_at: string | null;
            /** @constant */
            layer: "ethernet-frame";
            /** @description By the site that gets least; null until it was measured. */
            measured_out_bps: number | null;
            measured_in_bps: number | null;
            measured_at: string | null;
            used_out_bps: number;
            used_in_bps: number;
            measurements: components["schemas"]["Measurement"][];
            done: boolean;
        };
        /** @description When another circuit like one begins; it lasts as long. */
        CircuitClone: {
            /** @default now */
            begin?: string;
            request_id?: string | null;
            /** @default operator */
            by?: string;
        };
        /**
         * @description Who makes a circuit.
         * @enum {string}
         */
        CircuitDriver: "linux" | "declared";
        /** @description Something that happened to a circuit. */
        CircuitEvent: {
            /** Format: date-time */
            at: string;
            event: string;
            /** @description After it. */
            state: components["schemas"]["CircuitState"];
            sentence: string;
            /** @description For a failure: at what the circuit failed. */
            step: string;
            /** @description For a failure: where. */
            hop: string;
            /** @description For a failure: what to do. */
            remedy: string;
            by: string;
        };
        /** @description What may change of a circuit, all or nothing; `end` null lets it last until it is cancelled. */
        CircuitModify: {
            rate_out_bps?: number | null;
            rate_in_bps?: number | null;
            end?: string | null;
            burst_bytes?: number | null;
            /** @default operator */
            by?: string;
        };
        /** @description A circuit to reserve; the same request id with the same content again is answered with the same circuit. */
        CircuitNew: {
            request_id?: string | null;
            /**
             * @default {
             *       "port": ""
             *     }
             */
            hub?: components["schemas"]["EndNew"];
            sites: components["schemas"]["EndNew"][];
            rate_out_bps: number;
            /** @default 0 */
            rate_in_bps?: number;
            /**
             * @default ethernet-frame
             * @constant
             */
            layer?: "ethernet-frame";
            /**
             * @description `now`, RFC 3339 with an offset, or so long from now: `+2h`.
             * @default now
             */
            begin?: string;
            /** @description As `begin`; left out: until it is cancelled. With `+`: so long after the begin. */
            end?: string | null;
            /** @default linux */
            driver?: components["schemas"]["CircuitDriver"];
            /** @default head-end */
            replication?: components["schemas"]["Replication"];
            group?: string | null;
            /** @default hard */
            cap?: components["schemas"]["Cap"];
            /** @default 0.9 */
            shaped_share?: number;
            burst_bytes?: number | null;
            /** @default  */
            description?: string;
            /** @default  */
            ticket?: string;
            /** @default operator */
            by?: string;
        };
        /**
         * @description How many sites a circuit joins with the hub.
         * @enum {string}
         */
        CircuitShape: "point-to-point" | "multipoint";
        /**
         * @description Where a circuit is in its life; `downburst_circuits.lifecycle` has the table.
         * @enum {string}
         */
        CircuitState: "requested" | "admitted" | "provisioning" | "verifying" | "active" | "degraded" | "down" | "failed" | "ending" | "cancelling" | "ended" | "cancelled";
        /** @description A circuit with its history. */
        CircuitWhole: {
            circuit: number;
            state: components["schemas"]["CircuitState"];
            /** @description Why it is in this state, in a sentence. */
            reason: string;
            shape: components["schemas"]["CircuitShape"];
            sites: string[];
            request_id: string;
            /** @description The hub's first. */
            ends: components["schemas"]["End"][];
            rate_out_bps: number;
            rate_in_bps: number;
            /** Format: date-time */
            begin: string;
            /** @description Null: until it is cancelled. */
            end: string | null;
            driver: components["schemas"]["CircuitDriver"];
            replication: components["schemas"]["Replication"];
            group: string | null;
            cap: components["schemas"]["Cap"];
            /** @description What is sent into it at most, as a share of its rate. */
            shaped_share: number;
            burst_bytes: number | null;
            description: string;
            /** @description Under which somebody else made it. */
            ticket: string;
            requested_by: string;
            since: string | null;
            created_at: string | null;
            /** @constant */
            layer: "ethernet-frame";
            /** @description By the site that gets least; null until it was measured. */
            measured_out_bps: number | null;
            measured_in_bps: number | null;
            measured_at: string | null;
            used_out_bps: number;
            used_in_bps: number;
            measurements: components["schemas"]["Measurement"][];
            events: components["schemas"]["CircuitEvent"][];
        };
        /** @description The credential of a receiver: its hash, never anything to log in with. */
        Credential: {
            sha256: string;
            site: string;
            /** Format: date-time */
            created_at: string;
            peer: string;
            expires_at: string | null;
            revoked_at: string | null;
            /** @description SHA-256 of the one that it takes the place of. */
            replaces: string | null;
            replaced_at: string | null;
            /** @description Since when somebody wants it replaced before its time. */
            asked_at: string | null;
            /** @description From when on its receiver is asked for another one. */
            renews_at: string | null;
        };
        /** @description How many credentials of a site were revoked. */
        CredentialsRevoked: {
            site: string;
            revoked: number;
        };
        /** @description The current plan of a feed, and the order that it follows, if there is one. */
        CurrentPlan: {
            feed: string;
            version: number;
            transport: components["schemas"]["Transport"];
            reason: string;
            /** Format: date-time */
            made_at: string;
            pinned: boolean;
            legs: components["schemas"]["Leg"][];
            candidates: components["schemas"]["Candidate"][];
            figures: {
                [key: string]: boolean | number | string | null;
            };
            /** @description Null: not measured yet. */
            floor: components["schemas"]["Floor"] | null;
            flip: boolean | number | string | null;
            would_be: boolean | number | string | null;
            products: number;
            pin: components["schemas"]["Pin"] | null;
        };
        /** @description A session's connections for products. */
        DataConnections: {
            open: number;
            planned: number;
            reason: string;
        };
        /** @description A product's state for one site, with the reason and the next action. */
        Delivery: {
            site: string;
            state: components["schemas"]["DeliveryState"];
            /** @description Null where nothing keeps it: it is there, or on its way. */
            cause: components["schemas"]["Cause"] | null;
            reason: string;
            next_action: string;
            receipt: components["schemas"]["Receipt"] | null;
            timing: components["schemas"]["Timing"];
        };
        /**
         * @description Where a product is for a site.
         * @enum {string}
         */
        DeliveryState: "waiting" | "sending" | "repairing" | "stored" | "rejected" | "expired" | "not-subscribed" | "denied";
        /**
         * @description Seen from the hub.
         * @enum {string}
         */
        Direction: "out" | "in";
        /** @description Product sizes of a feed and gaps between its products, from its log. */
        Distribution: {
            feed: string;
            /** Format: date-time */
            since: string;
            products: number;
            bytes: number;
            sizes: components["schemas"]["SizeBin"][];
            silences: components["schemas"]["SilenceBin"][];
            complete: boolean;
        };
        /**
         * @description What makes two products of a feed the same one.
         * @enum {string}
         */
        DuplicateRule: "id-and-content" | "content-without-wmo-start" | "id" | "signature" | "none";
        /**
         * @description What an acknowledged product survives: the end of the process, or a power cut (fsync per product).
         * @enum {string}
         */
        Durability: "process" | "power";
        /** @description One end of a circuit. */
        End: {
            port: string;
            site: string | null;
            /** @description The tags that were asked for; null: any that the port offers. */
            first_vlan: number | null;
            last_vlan: number | null;
            /** @description The tag it has; null: untagged, or not admitted yet. */
            vlan: number | null;
            /** @description Inside the circuit, with its prefix length. */
            address: string | null;
        };
        /** @description One end: a port by its name, or a site that has one port; tags, if not any that the port offers. */
        EndNew: {
            first_vlan?: number | null;
            last_vlan?: number | null;
            /** @default  */
            port?: string;
            site?: string | null;
            /** @description With the prefix length; declared circuits only. */
            address?: string | null;
        };
        /** @description What a site says of itself; what is left out keeps its value. */
        EndpointChange: {
            organisation?: string | null;
            contact?: string | null;
            place?: components["schemas"]["PlaceShape"] | null;
            multicast_interface?: string | null;
            circuit_attachment?: components["schemas"]["AttachmentShape"] | null;
            access_rate_bps?: number | null;
            ceiling_mbps_by_hour?: number[] | null;
        };
        /** @description Something that is wrong, and what to do about it. */
        Fault: {
            /** Format: date-time */
            at: string;
            severity: components["schemas"]["Severity"];
            /** @description Of the alarm that is raised for it if it lasts; null for what raises none. */
            kind: components["schemas"]["AlarmKind"] | null;
            /** @description Its number, if it goes on. */
            alarm: number | null;
            sentence: string;
            feed: string | null;
            site: string | null;
            /** @description What to do. */
            next: string | null;
            silence: components["schemas"]["Silence"] | null;
        };
        /** @description A named stream of products. */
        Feed: {
            feed: string;
            class: components["schemas"]["FeedClass"];
            retention_hours: number;
            retention_bytes: number;
            objective_ms: number;
            duplicate_rule: components["schemas"]["DuplicateRule"];
            durability: components["schemas"]["Durability"];
            max_product_bytes: number;
            /** @description The leg that serves sites by unicast. */
            unicast_leg: number | null;
            created_at: string | null;
            /** @description LDM's feed types of its products; null: LDMs neither bring nor get them. */
            ldm_feed_type: string | null;
            /** @description Of these types, the products whose identifier matches; null: all. */
            ldm_pattern: string | null;
        };
        /** @description What a site lacks of one feed. */
        FeedBacklog: {
            feed: string;
            /** @description False: the site stands in another log than the hub's, so that it can't be counted. */
            known: boolean;
            products: number;
            bytes: number;
            oldest_us: number | null;
            lost_products: number;
            lost_bytes: number;
            counting: boolean;
        };
        /** @description Properties of a feed; those left out keep their value (PATCH) or take the default (POST, PUT). */
        FeedChange: {
            class?: components["schemas"]["FeedClass"] | null;
            retention_hours?: number | null;
            retention_bytes?: number | null;
            objective_ms?: number | null;
            duplicate_rule?: components["schemas"]["DuplicateRule"] | null;
            durability?: components["schemas"]["Durability"] | null;
            max_product_bytes?: number | null;
            /** @description LDM's feed types of its products; null: LDMs neither bring nor get them. */
            ldm_feed_type?: string | null;
            ldm_pattern?: string | null;
        };
        /**
         * @description Priority of a feed, highest first.
         * @enum {string}
         */
        FeedClass: "warning" | "observation" | "grid" | "bulk";
        /** @description The latencies of a feed at all its sites over the last hour. */
        FeedLatency: {
            distribution_ms: components["schemas"]["Figures"];
            end_to_end_ms: components["schemas"]["Figures"];
            history: components["schemas"]["MinuteLatency"][];
        };
        /** @description A feed to make. */
        FeedNew: {
            class?: components["schemas"]["FeedClass"] | null;
            retention_hours?: number | null;
            retention_bytes?: number | null;
            objective_ms?: number | null;
            duplicate_rule?: components["schemas"]["DuplicateRule"] | null;
            durability?: components["schemas"]["Durability"] | null;
            max_product_bytes?: number | null;
            /** @description LDM's feed types of its products; null: LDMs neither bring nor get them. */
            ldm_feed_type?: string | null;
            ldm_pattern?: string | null;
            feed: string;
        };
        /** @description A feed: what comes in, its plan, its latency. */
        FeedSeen: {
            feed: string;
            class: components["schemas"]["FeedClass"];
            products: number;
            bytes: number;
            rate_bps: number;
            /** @description Product bits per second of each of the last seconds, oldest first. */
            rate_history: (number)[];
            mean_bps: number;
            peak_1s_bps: number;
            peak_60s_bps: number;
            silent_share: number | null;
            fan_out: number;
            head: number;
            plan: components["schemas"]["PlanSeen"] | null;
            latency: components["schemas"]["FeedLatency"];
            objective_ms: number;
        };
        /** @description What came into a feed. */
        FeedVolume: {
            feed: string;
            bytes: number;
            products: number;
            mean_bytes_per_hour: number;
            max_bytes_per_hour: number;
            share: number;
            products_per_hour: number;
        };
        /** @description What is known of some latencies; null where nothing is counted. */
        Figures: {
            p50: number | null;
            p95: number | null;
            p99: number | null;
            max: number | null;
            count: number;
            /** @description How many are negative: the clocks were wrong by more than that. */
            negative: number;
            /** @description By how much clocks may differ. */
            bound: number | null;
        };
        /** @description The machines' own time, which is part of each predicted latency. */
        Floor: {
            p50_ms: number | null;
            p95_ms: number | null;
            p99_ms: number | null;
            hub_p50_ms: number | null;
            slowest_site: string | null;
            slowest_site_p50_ms: number | null;
            deliveries: number;
        };
        /**
         * @description How an answer is written.
         * @enum {string}
         */
        Form: "json" | "csv";
        /** @description Every probe passes. */
        Health: {
            status: string;
            ledger: string;
            /** @description By name `ok`, or what is wrong. */
            probes: {
                [key: string]: string;
            };
        };
        /** @description Whether a site hears groups, as it was when it last joined one. */
        Hearing: {
            /** @enum {string} */
            state: "heard" | "not-heard" | "too-slow" | "not-tried" | "not-allowed";
            feed: string | null;
            at: string | null;
            again_at: string | null;
            reason: string;
        };
        /** @description Of the heartbeats in a feed: when the newest that came out was made, and the oldest that did not. */
        Heartbeat: {
            came_out: string | null;
            waits_since: string | null;
        };
        /** @description The distribution of latencies, with the figures of all products. */
        Histogram: {
            bins: components["schemas"]["Bin"][];
            figures: components["schemas"]["Figures"];
        };
        /** @description The hub itself. */
        HubState: {
            name: string;
            version: string;
            /** Format: date-time */
            started_at: string;
            uptime_s: number;
            node: components["schemas"]["NodeState"];
            probes: {
                [key: string]: string;
            };
        };
        /** @description Product ids that match `pattern` and not `not_pattern`. */
        IdFilter: {
            pattern: string;
            not_pattern: string | null;
        };
        /** @description A link to choose a password: what follows the page's address. */
        Invitation: {
            fragment: string;
            /** Format: date-time */
            link_expires_at: string;
        };
        /** @description Latency over time, oldest first; steps without products are left out. */
        LatencyHistory: {
            step_minutes: number;
            /**
             * Format: date-time
             * @description The range that was asked for; the end is not part of it.
             */
            from: string;
            /** Format: date-time */
            to: string;
            points: components["schemas"]["LatencyPoint"][];
        };
        /**
         * @description Between which stamps a latency lies.
         * @enum {string}
         */
        LatencyKind: "distribution" | "end-to-end" | "queueing" | "action";
        /** @description The latencies of one step. */
        LatencyPoint: {
            /** Format: date-time */
            at: string;
            p50: number | null;
            p95: number | null;
            p99: number | null;
            max: number | null;
            count: number;
            negative: number;
            bound: number | null;
        };
        /** @description Hosts that may push products of these feed types whose identifiers match. */
        LdmAccept: {
            id: number;
            feeds: string;
            pattern: string;
            host: string;
            created_at: string | null;
        };
        /** @description Hosts that may push products. */
        LdmAcceptNew: {
            feeds: string;
            /** @default .* */
            pattern?: string;
            host: string;
        };
        /** @description A connected LDM, with the products sent and answered. */
        LdmPeer: {
            /** @description Its name, if it has one. */
            peer: string | null;
            address: string;
            site: string | null;
            /** @description `feedme`, `notifyme` or `hiya`; empty if it was told nothing. */
            what: string;
            mode: string | null;
            products: number;
            bytes: number;
            /** @description Products behind which it answered. */
            answered: number;
            answered_us: number | null;
            unacknowledged_bytes: number;
        } & {
            [key: string]: unknown;
        };
        /** @description Where LDMs connect, and those that are connected. */
        LdmPeers: {
            addresses: string[];
            peers: components["schemas"]["LdmPeer"][];
        };
        /** @description An rtstats line: how late the products of one feed type were at a host in one hour, by its clock. */
        LdmReport: {
            report: string;
            at_us: number;
            host: string;
            feed: string;
            path: string;
            products: number;
            bytes: number;
            mean_latency_s: number;
        };
        /** @description LDMs that are asked for the same products. */
        LdmSource: {
            source: string;
            /** @description Feed types, as an expression. */
            feeds: string;
            /** @description `HOST[:PORT]`, the first one primary. */
            upstreams: string[];
            pattern: string;
            max_age_s: number;
            created_at: string | null;
        };
        /** @description A source with the state of each of its upstreams. */
        LdmSourceListed: {
            source: string;
            /** @description Feed types, as an expression. */
            feeds: string;
            /** @description `HOST[:PORT]`, the first one primary. */
            upstreams: string[];
            pattern: string;
            max_age_s: number;
            created_at: string | null;
            state: components["schemas"]["LdmUpstreamState"][];
            /** @description Whether each of its feed types belongs to a feed. */
            has_feeds: boolean;
        };
        /** @description LDMs that are asked for the same products. */
        LdmSourceNew: {
            source: string;
            feeds: string;
            /** @default .* */
            pattern?: string;
            upstreams: string[];
            /** @default 3600 */
            max_age_s?: number;
        };
        /** @description LDMs that are asked for the same products. */
        LdmSourceSeen: {
            source: string;
            feeds: string;
            upstreams: components["schemas"]["LdmUpstreamSeen"][];
        };
        /** @description How it stands with an LDM that is asked for products. */
        LdmUpstreamSeen: {
            upstream: string;
            connected: boolean;
            mode: string;
            since: string | null;
            reason: string | null;
        };
        /** @description How it stands with one upstream; members after `connected` are left out while the node has not told them. */
        LdmUpstreamState: {
            upstream: string;
            connected: boolean;
            mode?: string | null;
            reason?: string | null;
            stored?: number | null;
            bytes?: number | null;
            duplicates?: number | null;
            passed_over?: number | null;
            dropped?: number | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * @description One delivery over one path to a set of sites, with what it sent.
         *
         *     `group`, `port` and `rate_bps` are left out of a leg of an earlier plan, of which only the counts are kept.
         */
        Leg: {
            leg: number;
            transport: components["schemas"]["Transport"];
            group?: string | null;
            port?: number | null;
            rate_bps?: number | null;
            sites: number;
            site_names: string[];
            circuits: components["schemas"]["LegCircuit"][];
            products: number;
            bytes: number;
            egress_bytes: number;
            repair_bytes: number;
            control_bytes: number;
            unicast_equivalent_bytes: number;
        };
        /** @description The circuit that a leg uses to a site. */
        LegCircuit: {
            site: string;
            circuit: number;
        };
        /** @description Of a feed the site may take what matches `pattern` (OK) and not `not_pattern` (NOT). */
        LimitShape: {
            feed: string;
            /** @default .* */
            pattern?: string;
            not_pattern?: string | null;
        };
        /** @description A one-time link, and what it asks for: name and password of the first administrator, or a new password. */
        LinkUse: {
            link: string;
            user?: string | null;
            password?: string | null;
        };
        /** @description A product that a site will not get: rejected there, or expired before delivery. */
        LostDelivery: {
            site: string;
            feed: string;
            epoch: string;
            sequence: number;
            state: string;
            /** Format: date-time */
            at: string;
            product_id: string | null;
            size: number | null;
            stored_at: string | null;
            kept: boolean;
        };
        /** @description A page of lost deliveries, newest first. */
        LostPage: {
            items: components["schemas"]["LostDelivery"][];
            /** @description The cursor of the next page; null: there is none. */
            next: string | null;
        };
        /** @description A window in which nobody is told of the site's alarms. */
        Maintenance: {
            minutes: number;
            /** @default  */
            reason?: string;
            /** @description When; now, if left out. */
            begins?: string | null;
        };
        /** @description What the last probe of one end found in one direction. */
        Measurement: {
            site: string;
            direction: components["schemas"]["Direction"];
            /** Format: date-time */
            at: string;
            /** @description What the circuit carries by measurement. */
            rate_bps: number;
            reserved_bps: number;
            loss_share: number;
            round_trip_us: number | null;
            /** @description Of a shortfall: policer, slow-segment, unprotected-segment, small-buffer, cut or unclear. */
            cause: string;
            sentence: string;
            remedy: string;
            /** @description Whether feeds may ride on it. */
            enough: boolean;
        };
        /** @description The latencies of one minute. */
        MinuteLatency: {
            /** Format: date-time */
            minute: string;
            p50: number | null;
            p99: number | null;
        };
        /** @description What the node's log of a feed holds. */
        NodeFeed: {
            feed: string;
            epoch: string;
            head: number;
            first: number;
            products: number;
            bytes: number;
        } & {
            [key: string]: unknown;
        };
        /** @description What the node says of a site's session. */
        NodeSession: {
            site: string;
            feeds: {
                [key: string]: unknown;
            }[];
        } & {
            [key: string]: unknown;
        };
        /** @description Whether the node runs, and how often it was started again. */
        NodeState: {
            running: boolean;
            restarts: number;
        };
        /** @description What the latency of a feed at one site has to meet, in place of the feed's objective. */
        Objective: {
            /** @description Feed and site, joined by a slash. */
            objective: string;
            feed: string;
            site: string;
            objective_ms: number;
            /** @description Share of deliveries that has to meet it; null: as the settings say. */
            quantile: number | null;
            /** @description Over how long that is judged; null: as the settings say. */
            minutes: number | null;
        };
        /** @description A latency that a share of deliveries has to meet over some minutes; what is left out is as the settings say. */
        ObjectiveWanted: {
            objective_ms: number;
            quantile?: number | null;
            minutes?: number | null;
        };
        /** @description A circuit to the site; `enough` is null until it was measured. */
        Offer: {
            circuit: number;
            state: components["schemas"]["CircuitState"];
            rate_bps: number;
            measured_bps: number | null;
            enough: boolean | null;
        };
        /** @description Everything the page shows, which the event `overview` carries too. Null: not measured. */
        Overview: {
            hub: components["schemas"]["HubState"];
            /** Format: date-time */
            now: string;
            faults: components["schemas"]["Fault"][];
            throughput: components["schemas"]["Throughput"];
            feeds: components["schemas"]["FeedSeen"][];
            sites: components["schemas"]["SiteSeen"][];
            circuits: components["schemas"]["Circuit"][];
            upstreams: components["schemas"]["UpstreamSeen"][];
            ldm_sources: components["schemas"]["LdmSourceSeen"][];
        };
        /**
         * @description Whom to tell of this site's alarms; empty lists stand for all. Without both severities and kinds: no
         *     information.
         */
        OwnReceiver: {
            receiver: string;
            /** @enum {string} */
            kind: "mail" | "webhook";
            address: string;
            kinds?: components["schemas"]["AlarmKind"][] | null;
            feeds?: string[] | null;
            severities?: components["schemas"]["Severity"][] | null;
        };
        /** @description The own password. */
        PasswordChange: {
            old: string;
            new: string;
        };
        /** @description The way to a site: measured, tested and reserved. */
        Path: {
            site: string;
            seen_at: string | null;
            round_trip_ms: number | null;
            clock_bound_ms: number | null;
            access_rate_bps: number | null;
            loss: number | null;
            rate_bps: number | null;
            rate_is_lower_bound: boolean | null;
            congestion_control: string | null;
            path_mtu_bytes: number | null;
            multicast: components["schemas"]["Hearing"];
            circuits: components["schemas"]["Offer"][];
        };
        /** @description What was measured of the way to a site beside round trip and clock; null is what nobody has measured yet. */
        PathFacts: {
            /** @description The share of segments that were sent again of late. */
            loss: number | null;
            rate_bps: number | null;
            /** @description There was nothing more to send. */
            rate_is_lower_bound: boolean | null;
            congestion_control: string | null;
            path_mtu_bytes: number | null;
            multicast: components["schemas"]["Hearing"];
            circuits: components["schemas"]["Offer"][];
        };
        /** @description The latency of a feed to a site by a transport. */
        PathLatency: {
            feed: string;
            site: string;
            transport: components["schemas"]["Transport"];
            kind: components["schemas"]["LatencyKind"];
            p50: number | null;
            p95: number | null;
            p99: number | null;
            max: number | null;
            count: number;
            negative: number;
            bound: number | null;
        };
        /** @description A subscription that is tried on what came. */
        PatternTest: {
            /** @default .* */
            pattern?: string;
            not_pattern?: string | null;
            /** @default 1 */
            hours?: number;
        };
        /** @description Effect of a pattern on the last hours: counts, and the newest ids that match and do not. */
        PatternTested: {
            feed: string;
            /** Format: date-time */
            since: string;
            products: number;
            matched: number;
            matched_bytes: number;
            matched_ids: string[];
            other_ids: string[];
            complete: boolean;
        };
        /** @description An operator's order to use one transport for a feed. */
        Pin: {
            feed: string;
            transport: components["schemas"]["Transport"];
            by: string;
            /** Format: date-time */
            at: string;
        };
        /** @description A transport to use whatever the scheduler thinks. */
        PinNew: {
            transport: components["schemas"]["Transport"];
            /** @description Who is named as the one who asked; whoever asks, if left out. */
            by?: string | null;
        };
        /** @description Where a site is. */
        Place: {
            text: string;
            latitude: number | null;
            longitude: number | null;
        };
        /** @description Where a site is. */
        PlaceShape: {
            /** @default  */
            text?: string;
            latitude?: number | null;
            longitude?: number | null;
        };
        /** @description The scheduler's versioned decision for a feed, with the figures and the sentence that explain it. */
        Plan: {
            feed: string;
            version: number;
            transport: components["schemas"]["Transport"];
            reason: string;
            /** Format: date-time */
            made_at: string;
            pinned: boolean;
            legs: components["schemas"]["Leg"][];
            candidates: components["schemas"]["Candidate"][];
            figures: {
                [key: string]: boolean | number | string | null;
            };
            /** @description Null: not measured yet. */
            floor: components["schemas"]["Floor"] | null;
            flip: boolean | number | string | null;
            would_be: boolean | number | string | null;
            products: number;
        };
        /** @description The current plan of a feed. */
        PlanSeen: {
            version: number;
            transport: components["schemas"]["Transport"];
            reason: string;
            pinned: boolean;
            legs: components["schemas"]["Leg"][];
            candidates: components["schemas"]["Candidate"][];
            figures: {
                [key: string]: boolean | number | string | null;
            };
            floor: components["schemas"]["Floor"] | null;
            flip: string | null;
            would_be: string | null;
            /** Format: date-time */
            since: string;
        };
        /** @description Where circuits end: a port of the hub's host or of a site's, and what of it may be reserved. */
        Port: {
            port: string;
            /** @description What circuits may reserve of it, in each direction. */
            rate_bps: number;
            /** @description Whose port it is; null: this hub's. */
            site: string | null;
            /** @description Its name on the host. */
            interface: string;
            /** @description The address on it between which the linux driver lays its tunnels. */
            underlay: string;
            /** @description Its name in the network's topology, if it has one. */
            stp: string;
            /** @description The tags that circuits may have there; null: circuits are untagged. */
            first_vlan: number | null;
            last_vlan: number | null;
            /** @description How fast the port itself is, in each direction; null: nobody said. */
            port_rate_bps: number | null;
            created_at: string | null;
            /** @constant */
            layer: "ethernet-frame";
        };
        /** @description Properties of a port; those left out keep their value (PATCH) or take the default (POST). */
        PortChange: {
            first_vlan?: number | null;
            last_vlan?: number | null;
            /** @description What circuits may reserve of it, each way. */
            rate_bps?: number | null;
            /** @description How fast the port itself is, if that is known; no more than this can be reserved. */
            port_rate_bps?: number | null;
            interface?: string | null;
            underlay?: string | null;
            stp?: string | null;
        };
        /** @description A port to make. */
        PortNew: {
            first_vlan?: number | null;
            last_vlan?: number | null;
            rate_bps: number;
            /** @description How fast the port itself is, if that is known; no more than this can be reserved. */
            port_rate_bps?: number | null;
            interface?: string | null;
            underlay?: string | null;
            stp?: string | null;
            port: string;
            site?: string | null;
            /**
             * @default ethernet-frame
             * @constant
             */
            layer?: "ethernet-frame";
        };
        /** @description A product as a feed's log describes it. */
        ProductListed: {
            feed: string;
            sequence: number;
            product_id: string;
            origin: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            stored_at: string;
            digest: string;
            /** @description Whether the log still has the bytes; the description outlives them. */
            kept: boolean;
            size: number;
        };
        /** @description A page of products, newest first. */
        ProductPage: {
            items: components["schemas"]["ProductListed"][];
            /** @description The cursor of the next page; null: there is none. */
            next: string | null;
        };
        /** @description A product with its delivery to each site. */
        ProductTraced: {
            feed: string;
            epoch: string;
            sequence: number;
            product_id: string;
            origin: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            stored_at: string;
            size: number;
            digest: string;
            class: string;
            kept: boolean;
            /** @description How many sites are in each state. */
            states: {
                [key: string]: number;
            };
            deliveries: components["schemas"]["Delivery"][];
        };
        /** @description What a site said about a product. Stamps of the site are on the site's clock. */
        Receipt: {
            outcome: string;
            lane: string;
            transport: components["schemas"]["Transport"];
            leg: number;
            repaired: boolean;
            /** @description On the hub's clock. */
            first_byte_sent_at: string | null;
            last_byte_at: string | null;
            site_stored_at: string | null;
            action_done_at: string | null;
            /** @description Site's clock minus the hub's; null while they were not compared. */
            clock_offset_us: number | null;
            clock_bound_us: number | null;
        };
        /** @description Whom to tell, and of what; empty stands for all. */
        Receiver: {
            receiver: string;
            kind: components["schemas"]["ReceiverKind"];
            /** @description A URL, or an address for mail; it may hold a secret. */
            address: string;
            kinds: components["schemas"]["AlarmKind"][];
            feeds: string[];
            sites: string[];
            severities: components["schemas"]["Severity"][];
            /** @description The site whose administrator made it: it hears of that site alone. */
            owner: string | null;
        };
        /**
         * @description How a receiver is told.
         * @enum {string}
         */
        ReceiverKind: "webhook" | "alertmanager" | "mail";
        /** @description Whom to tell; empty lists stand for all. Without severities and kinds: of all but information. */
        ReceiverNew: {
            receiver: string;
            kind: components["schemas"]["ReceiverKind"];
            address: string;
            kinds?: components["schemas"]["AlarmKind"][] | null;
            feeds?: string[] | null;
            sites?: string[] | null;
            severities?: components["schemas"]["Severity"][] | null;
        };
        /** @description Why not, for the asker to read. */
        Refusal: {
            answer: string;
        };
        /** @description How many credentials of a site will be replaced, and whether its receiver can do so by itself. */
        ReplacementAsked: {
            site: string;
            asked: number;
            connected: boolean;
            /** @description Null while the site is not connected. */
            renews: boolean | null;
        };
        /**
         * @description Who makes the copies of a multipoint circuit.
         * @enum {string}
         */
        Replication: "head-end" | "underlay";
        /** @description A request for access; the secret gives access to its state, and is shown only here. */
        RequestMade: {
            number: number;
            secret: string;
            fragment: string;
        };
        /** @description A site that asks to be served, with its endpoint. */
        RequestNew: {
            site: string;
            organisation: string;
            contact: string;
            /** @default  */
            place?: string;
            /** @default  */
            multicast_interface?: string;
            access_rate_bps?: number | null;
            feeds?: string[] | null;
            /** @default  */
            note?: string;
        };
        /** @description What an asker was told when asking. */
        RequestSecret: {
            secret: string;
        };
        /**
         * @description What became of a request for access.
         * @enum {string}
         */
        RequestState: "waiting" | "approved" | "refused";
        /** @description What became of a request; once approved, with a link to choose a password, until one is chosen. */
        RequestStateShown: {
            number: number;
            site: string;
            state: components["schemas"]["RequestState"];
            answer: string;
            asked_at: string | null;
            user: string | null;
            fragment: string | null;
        };
        /** @description Products of a feed that were stored at the hub in a time range and go to one site again. */
        Resend: {
            pattern: string;
            not_pattern: string | null;
            /** Format: date-time */
            from: string;
            /** Format: date-time */
            to: string;
            id: number;
            site: string;
            feed: string;
            kind: components["schemas"]["ResendKind"];
            /** @description What the site subscribed before a backfill; products that match one of these are left out. */
            had: components["schemas"]["IdFilter"][];
            state: components["schemas"]["ResendState"];
            requested_at: string | null;
            requested_by: string;
            ended_at: string | null;
            /** @description Delivered under this resend so far. */
            products: number;
            bytes: number;
            /** @description Matched, but the hub has only the memory of them. */
            expired: number;
        };
        /**
         * @description Why stored products travel again.
         * @enum {string}
         */
        ResendKind: "resend" | "backfill";
        /** @description Products stored at the hub from `from` to `to` whose id matches, to one site again. */
        ResendNew: {
            site: string;
            feed: string;
            /** @description RFC 3339 with an offset, or how long ago: `2h`. */
            from: string;
            /** @default now */
            to?: string;
            /** @default .* */
            pattern?: string;
            not_pattern?: string | null;
            /** @description Who is named as the one who asked; whoever asks, if left out. */
            by?: string | null;
        };
        /**
         * @description Where a resend stands.
         * @enum {string}
         */
        ResendState: "waiting" | "done" | "cancelled";
        /**
         * @description What a person or program is to the hub.
         * @enum {string}
         */
        Role: "viewer" | "site" | "operator" | "admin";
        /**
         * @description What a route asks of its caller.
         * @enum {string}
         */
        Scope: "latency" | "read" | "details" | "metrics" | "ingest" | "own" | "operate" | "admin";
        /** @description A session; its secret is told to programs that ask for it. */
        SessionBegun: {
            user: string | null;
            role: components["schemas"]["Role"] | null;
            /** @description The one site of a user with the role `site`. */
            site: string | null;
            scopes: components["schemas"]["Scope"][];
            /** Format: date-time */
            expires_at: string;
            /** @description Left out for browsers, which get a cookie. */
            session?: string | null;
        };
        /** @description The session of a connected site. */
        SessionShown: {
            data_connections: components["schemas"]["DataConnections"] | null;
        };
        /**
         * @description How soon somebody has to do something; the worst first.
         * @enum {string}
         */
        Severity: "critical" | "warning" | "information";
        /** @description A user's name and password. */
        SignIn: {
            user: string;
            password: string;
            /**
             * @description Programs get the session's secret in the answer; browsers get it as a cookie that pages can't read.
             * @default false
             */
            bearer?: boolean;
        };
        /** @description A link that signs a browser in once: what follows the page's address. */
        SignInLink: {
            fragment: string;
            /** Format: date-time */
            expires_at: string;
        };
        /** @description Alarms that nobody is told of until a moment; null stands for all. */
        Silence: {
            number: number;
            /** Format: date-time */
            until: string;
            by: string;
            reason: string;
            kind: components["schemas"]["AlarmKind"] | null;
            feed: string | null;
            site: string | null;
            /** @description Null: it began when it was made. */
            begins: string | null;
            /** @description Of the only alarm that it is about, however often that begins and ends. */
            alarm_key: string | null;
        };
        /** @description How many gaps between products last at most so long, and longer than half of it. */
        SilenceBin: {
            up_to_ms: number;
            times: number;
        };
        /** @description Alarms that nobody is told of for a while: a single one that goes on, or those of a kind, feed and site. */
        SilenceNew: {
            minutes: number;
            /** @default  */
            reason?: string;
            /** @description Number of an alarm that goes on: it alone, whenever it begins again. Kind, feed and site are its own then. */
            alarm?: number | null;
            kind?: components["schemas"]["AlarmKind"] | null;
            feed?: string | null;
            site?: string | null;
            /** @description When; now, if left out. */
            begins?: string | null;
        };
        /** @description An organisation's receiving host. */
        Site: {
            site: string;
            organisation: string;
            contact: string;
            place: components["schemas"]["Place"];
            /** @description Interface or address at the site that joins groups; empty: the site's own choice. */
            multicast_interface: string;
            circuit_attachment: components["schemas"]["Attachment"] | null;
            access_rate_bps: number | null;
            /** @description What the site allows the hub, for each hour of the day in UTC; empty: no ceiling. */
            ceiling_mbps_by_hour: number[];
            /** @description Feeds the site may take; `*` stands for all. */
            allow: string[];
            limits: components["schemas"]["SiteLimit"][];
            /** @description Whether the site may be served by multicast. */
            multicast: boolean;
            active: boolean;
            /** @description How many connections for products it gets beside its first, 0 to 16; null: as many as help. */
            data_connections: number | null;
            created_at: string | null;
            /** @description It keeps its LDM: matches the host's name or address. */
            ldm_host: string | null;
        };
        /** @description Properties of a site; those left out keep their value (PATCH) or take the default (POST). */
        SiteChange: {
            organisation?: string | null;
            contact?: string | null;
            place?: components["schemas"]["PlaceShape"] | null;
            multicast_interface?: string | null;
            circuit_attachment?: components["schemas"]["AttachmentShape"] | null;
            access_rate_bps?: number | null;
            ceiling_mbps_by_hour?: number[] | null;
            allow?: string[] | null;
            /** @description Of these feeds it may take this alone; several to one feed add up, feeds without one may be taken whole. */
            limits?: components["schemas"]["LimitShape"][] | null;
            multicast?: boolean | null;
            active?: boolean | null;
            data_connections?: number | null;
            /** @description For a site that keeps its LDM: a pattern of its host's name or address; null: it runs a receiver. */
            ldm_host?: string | null;
        };
        /** @description How far a site is with a feed. What there is nothing to say of is left out. */
        SiteFeed: {
            feed: string;
            settled_to: number;
            pending: number;
            transport: components["schemas"]["Transport"];
            leg: number;
            /**
             * @description Why the site stores nothing of the feed at the moment, in its words.
             * @default
             */
            trouble?: string;
            /**
             * @description Products that came behind a later one, against the order that was asked for.
             * @default 0
             */
            late?: number;
            action_failed?: components["schemas"]["ActionFailed"];
        };
        /** @description Of a feed the site may take what matches `pattern` (OK) and not `not_pattern` (NOT). */
        SiteLimit: {
            feed: string;
            pattern: string;
            not_pattern: string | null;
        };
        /** @description A site with its state, its backlog, and the reason of each feed that it can't store. */
        SiteListed: {
            site: string;
            organisation: string;
            contact: string;
            place: components["schemas"]["Place"];
            /** @description Interface or address at the site that joins groups; empty: the site's own choice. */
            multicast_interface: string;
            circuit_attachment: components["schemas"]["Attachment"] | null;
            access_rate_bps: number | null;
            /** @description What the site allows the hub, for each hour of the day in UTC; empty: no ceiling. */
            ceiling_mbps_by_hour: number[];
            /** @description Feeds the site may take; `*` stands for all. */
            allow: string[];
            limits: components["schemas"]["SiteLimit"][];
            /** @description Whether the site may be served by multicast. */
            multicast: boolean;
            active: boolean;
            /** @description How many connections for products it gets beside its first, 0 to 16; null: as many as help. */
            data_connections: number | null;
            created_at: string | null;
            /** @description It keeps its LDM: matches the host's name or address. */
            ldm_host: string | null;
            state: components["schemas"]["SiteState"];
            /** @description The state for people, with its time and reason. */
            state_words: string;
            since: string | null;
            reason: string | null;
            connected: boolean;
            /** @description What its next products are, as far as they are due; null while it is not known. */
            behind_products: number | null;
            behind_bytes: number | null;
            /** @description The age of the oldest of them. */
            behind_s: number | null;
            /** @description What left the hub's log before the site had it. */
            lost_products: number | null;
            lost_bytes: number | null;
            /** @description The count goes on: it is at least so much. */
            behind_counting: boolean | null;
            /** @description By feed, why the site can't store it. */
            troubles: {
                [key: string]: string;
            };
        };
        /** @description A site to make. */
        SiteNew: {
            organisation?: string | null;
            contact?: string | null;
            place?: components["schemas"]["PlaceShape"] | null;
            multicast_interface?: string | null;
            circuit_attachment?: components["schemas"]["AttachmentShape"] | null;
            access_rate_bps?: number | null;
            ceiling_mbps_by_hour?: number[] | null;
            allow?: string[] | null;
            /** @description Of these feeds it may take this alone; several to one feed add up, feeds without one may be taken whole. */
            limits?: components["schemas"]["LimitShape"][] | null;
            multicast?: boolean | null;
            active?: boolean | null;
            data_connections?: number | null;
            /** @description For a site that keeps its LDM: a pattern of its host's name or address; null: it runs a receiver. */
            ldm_host?: string | null;
            site: string;
        };
        /** @description A receiver that a site's administrator made. */
        SiteReceiver: {
            /** @description Site and name, joined by a slash. */
            site_receiver: string;
            site: string | null;
            receiver: string;
            kind: components["schemas"]["ReceiverKind"];
            address: string;
            kinds: components["schemas"]["AlarmKind"][];
            feeds: string[];
            sites: string[];
            severities: components["schemas"]["Severity"][];
            owner: string | null;
        };
        /** @description A site: its state, its backlog, its clock, the way to it, and how far it is with each feed. */
        SiteSeen: {
            site: string;
            organisation: string;
            state: components["schemas"]["SiteState"];
            state_words: string;
            since: string | null;
            /** @description Why it is away, if that is known. */
            reason: string | null;
            connected: boolean;
            maintenance: components["schemas"]["Window"] | null;
            /** @description Connected, and served by another hub. */
            stand_by: boolean;
            /** @description What its next products are, as far as they are due: counted by the hub's own log. */
            behind_products: number | null;
            behind_bytes: number | null;
            /** @description The age of the oldest of them. */
            behind_s: number | null;
            /** @description What left the hub's log before the site had it. */
            lost_products: number | null;
            lost_bytes: number | null;
            /** @description The count goes on: it is at least so much. */
            behind_counting: boolean | null;
            clock_offset_ms: number | null;
            clock_bound_ms: number | null;
            round_trip_ms: number | null;
            path: components["schemas"]["PathFacts"];
            stored: number;
            last_receipt: string | null;
            feeds: components["schemas"]["SiteFeed"][];
        };
        /**
         * @description Words for programs; names are promises.
         * @enum {string}
         */
        SiteState: "removed" | "never-enrolled" | "never-connected" | "connected" | "stands-by" | "away";
        /** @description One site with its subscriptions, credentials and tokens, and the state of its session. */
        SiteWhole: {
            site: string;
            organisation: string;
            contact: string;
            place: components["schemas"]["Place"];
            /** @description Interface or address at the site that joins groups; empty: the site's own choice. */
            multicast_interface: string;
            circuit_attachment: components["schemas"]["Attachment"] | null;
            access_rate_bps: number | null;
            /** @description What the site allows the hub, for each hour of the day in UTC; empty: no ceiling. */
            ceiling_mbps_by_hour: number[];
            /** @description Feeds the site may take; `*` stands for all. */
            allow: string[];
            limits: components["schemas"]["SiteLimit"][];
            /** @description Whether the site may be served by multicast. */
            multicast: boolean;
            active: boolean;
            /** @description How many connections for products it gets beside its first, 0 to 16; null: as many as help. */
            data_connections: number | null;
            created_at: string | null;
            /** @description It keeps its LDM: matches the host's name or address. */
            ldm_host: string | null;
            subscriptions: components["schemas"]["Subscription"][];
            credentials: components["schemas"]["Credential"][];
            tokens: components["schemas"]["Token"][];
            troubles: {
                [key: string]: string;
            };
            heartbeats: {
                [key: string]: components["schemas"]["Heartbeat"];
            };
            state: components["schemas"]["SiteState"];
            state_words: string;
            since: string | null;
            reason: string | null;
            connected: boolean;
            behind_products: number | null;
            behind_bytes: number | null;
            behind_s: number | null;
            lost_products: number | null;
            lost_bytes: number | null;
            behind_counting: boolean | null;
            backlog: components["schemas"]["FeedBacklog"][];
            /** @description Where receivers connect. */
            sites_address: string[];
            session: components["schemas"]["SessionShown"];
        };
        /** @description How many products have at most so many bytes, and more than half of it. */
        SizeBin: {
            up_to_bytes: number;
            products: number;
        };
        /** @description The time between two stamps that follow each other. */
        Stage: {
            stage: string;
            /** @description Null where a clock or a missing stamp leaves it unknown. May be negative. */
            ms: number | null;
            /** @description Both ends are on different clocks: the value is known to within the bound. */
            across_clocks: boolean;
        };
        /** @description The hub and its node, with the node's feeds and sessions. */
        Status: {
            name: string;
            version: string;
            /** Format: date-time */
            started_at: string;
            uptime_s: number;
            data_dir: string;
            sites_address: string[];
            ca_sha256: string;
            probes: {
                [key: string]: string;
            };
            node: components["schemas"]["NodeState"];
            sites_connected: number;
            feeds: components["schemas"]["NodeFeed"][];
            sessions: components["schemas"]["NodeSession"][];
        };
        /**
         * @description A product that is in the log; `duplicate_of` instead of a sequence if it was there before.
         *
         *     Members without a value are left out.
         */
        Stored: {
            feed: string;
            product_id: string;
            stored: boolean;
            sequence?: number | null;
            epoch?: string | null;
            size: number;
            digest: string;
            stored_at?: string | null;
            created_at?: string | null;
            duplicate_of?: number | null;
        };
        /** @description A site's wish for the products of a feed whose id matches `pattern` and not `not_pattern`. */
        Subscription: {
            id: number;
            site: string;
            feed: string;
            pattern: string;
            not_pattern: string | null;
            /** @description Local software at the site sees live products in the order of their sequences; see `hold_s`. */
            in_order: boolean;
            /** @description How long a missing product holds back the later ones, if `in_order`. */
            hold_s: number;
            /** @description Products stored at the hub longer ago than this are not sent any more. */
            max_age_s: number | null;
            start_at: string | null;
            created_at: string | null;
        };
        /** @description Products of a feed whose id matches `pattern` (extended regex, searched) and not `not_pattern`. */
        SubscriptionNew: {
            feed: string;
            /** @default .* */
            pattern?: string;
            not_pattern?: string | null;
            /** @default false */
            in_order?: boolean;
            /** @default 2 */
            hold_s?: number;
            max_age_s?: number | null;
            /**
             * @description `now`, RFC 3339 with an offset, or how long ago: `2h`.
             * @default now
             */
            start?: string;
        };
        /** @description What comes in and goes out. */
        Throughput: {
            in_bps: number;
            out_bps: number;
            unicast_equivalent_bps: number;
            egress_bytes: number;
            unicast_equivalent_bytes: number;
        };
        /** @description A product's time on its way to one site. */
        Timing: {
            /** @description From the hub's log to the site's log. */
            distribution_ms: number | null;
            end_to_end_ms: number | null;
            bound_ms: number | null;
            /** @description The stage that took most, if the product was late. */
            slow: string | null;
            stages: components["schemas"]["Stage"][];
        };
        /** @description An enrolment token: when and by whom it was used, never its secret. */
        Token: {
            site: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            used_at: string | null;
            used_peer: string | null;
        };
        /** @description An enrolment token with its text, which is shown only here. */
        TokenMade: {
            token: string;
            site: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            used_at: string | null;
            used_peer: string | null;
        };
        /** @description How long an enrolment token lasts; the hub's setting `token_hours` if left out. */
        TokenNew: {
            hours?: number | null;
            /**
             * @description How long the receiver's credential lasts, and each that takes its place; the hub's setting
             *     `access.credential_days` if left out.
             */
            credential_days?: number | null;
        };
        /** @description How many unused enrolment tokens of a site ended. */
        TokensEnded: {
            site: string;
            ended: number;
        };
        /** @description Totals of all legs of all feeds. */
        Totals: {
            egress_bytes: number;
            unicast_equivalent_bytes: number;
            product_bytes: number;
            repair_bytes: number;
            control_bytes: number;
        };
        /** @description Where products are that a name may mean, newest first. */
        Trace: {
            asked: string;
            /** @description How the name was understood: file, sequence, id or digest. */
            read_as: string;
            products: components["schemas"]["ProductTraced"][];
            next_before: number | null;
            /** @description What a reader must know about the limits of the answer. */
            notes: string[];
        };
        /**
         * @description How the bytes of a leg travel.
         * @enum {string}
         */
        Transport: "unicast" | "static-circuit" | "dynamic-circuit" | "multicast";
        /** @description The distribution tree: upstreams, this hub, its sites with their feeds; no addresses, no contacts. */
        Tree: {
            hub: string;
            upstreams: components["schemas"]["TreeUpstream"][];
            sites: components["schemas"]["TreeSite"][];
        };
        /** @description A feed that a site takes, and how it travels now. */
        TreeFeed: {
            feed: string;
            transport: components["schemas"]["Transport"] | null;
        };
        /** @description A site with its feeds. */
        TreeSite: {
            site: string;
            organisation: string;
            connected: boolean;
            feeds: components["schemas"]["TreeFeed"][];
        };
        /** @description A hub that this hub is a site of. */
        TreeUpstream: {
            upstream: string;
            connected: boolean;
            feeds: string[];
        };
        /** @description An upstream, without its token. */
        Upstream: {
            upstream: string;
            address: string;
            /** @description The feeds to take; none: all that exist here and that it sends. */
            feeds: string[];
            created_at: string | null;
        };
        /** @description An upstream with its state; members after `connected` are left out while the node has not told them. */
        UpstreamListed: {
            upstream: string;
            address: string;
            feeds: string[];
            created_at: string | null;
            connected: boolean;
            /** @description What it calls itself. */
            hub?: string | null;
            reason?: string | null;
            stored?: number | null;
            passed_over?: number | null;
            looped?: number | null;
        } & {
            [key: string]: unknown;
        };
        /** @description A hub that this hub becomes a site of. */
        UpstreamNew: {
            upstream: string;
            address: string;
            token: string;
            feeds?: string[];
        };
        /** @description A hub that this hub is a site of. */
        UpstreamSeen: {
            upstream: string;
            address: string;
            /** @description None: every feed that both hubs have. */
            feeds: string[];
            connected: boolean;
            since: string | null;
            /** @description What it calls itself; null until it was first heard. */
            hub: string | null;
            reason: string | null;
        };
        /** @description A person who signs in with a password. */
        User: {
            user: string;
            role: components["schemas"]["Role"];
            site: string | null;
            active: boolean;
            /** @description False until the invitation was accepted. */
            has_password: boolean;
            created_at: string | null;
        };
        /** @description Properties of a user; those left out stay. */
        UserChange: {
            role?: components["schemas"]["Role"] | null;
            site?: string | null;
            active?: boolean | null;
        };
        /** @description A user with an invitation, which is shown only here. */
        UserInvited: {
            user: string;
            role: components["schemas"]["Role"];
            site: string | null;
            active: boolean;
            /** @description False until the invitation was accepted. */
            has_password: boolean;
            created_at: string | null;
            fragment: string;
            /** Format: date-time */
            link_expires_at: string;
        };
        /** @description A user to invite. */
        UserNew: {
            user: string;
            role: components["schemas"]["Role"];
            site?: string | null;
        };
        /** @description The volume of each feed, the largest first. */
        Volume: {
            minutes: number;
            /** Format: date-time */
            since: string;
            hours_seen: number;
            bytes: number;
            feeds: components["schemas"]["FeedVolume"][];
        };
        /** @description Volume over time, oldest first; steps without products are left out. */
        VolumeHistory: {
            step_minutes: number;
            /** Format: date-time */
            from: string;
            /** Format: date-time */
            to: string;
            points: components["schemas"]["Arrivals"][];
        };
        /** @description The caller of a hub. */
        Who: {
            user: string | null;
            role: components["schemas"]["Role"] | null;
            /** @description The one site of a user with the role `site`. */
            site: string | null;
            scopes: components["schemas"]["Scope"][];
            hub: string;
        };
        /** @description A maintenance window of a whole site. */
        Window: {
            number: number;
            /** Format: date-time */
            until: string;
            reason: string;
            by: string;
        };
        /** @description Why a request was refused: one sentence with the problem and the remedy (RFC 9457). */
        Problem: {
            type: string;
            title: string;
            status: number;
            detail: string;
            code: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type AccessRequest = components['schemas']['AccessRequest'];
export type AccessToken = components['schemas']['AccessToken'];
export type AccessTokenMade = components['schemas']['AccessTokenMade'];
export type AccessTokenNew = components['schemas']['AccessTokenNew'];
export type ActionFailed = components['schemas']['ActionFailed'];
export type Alarm = components['schemas']['Alarm'];
export type AlarmKind = components['schemas']['AlarmKind'];
export type AlarmPage = components['schemas']['AlarmPage'];
export type Alive = components['schemas']['Alive'];
export type Approval = components['schemas']['Approval'];
export type Arrivals = components['schemas']['Arrivals'];
export type Attachment = components['schemas']['Attachment'];
export type AttachmentShape = components['schemas']['AttachmentShape'];
export type Bin = components['schemas']['Bin'];
export type Candidate = components['schemas']['Candidate'];
export type Cap = components['schemas']['Cap'];
export type Cause = components['schemas']['Cause'];
export type Change = components['schemas']['Change'];
export type ChangePage = components['schemas']['ChangePage'];
export type Circuit = components['schemas']['Circuit'];
export type CircuitAnswered = components['schemas']['CircuitAnswered'];
export type CircuitClone = components['schemas']['CircuitClone'];
export type CircuitDriver = components['schemas']['CircuitDriver'];
export type CircuitEvent = components['schemas']['CircuitEvent'];
export type CircuitModify = components['schemas']['CircuitModify'];
export type CircuitNew = components['schemas']['CircuitNew'];
export type CircuitShape = components['schemas']['CircuitShape'];
export type CircuitState = components['schemas']['CircuitState'];
export type CircuitWhole = components['schemas']['CircuitWhole'];
export type Credential = components['schemas']['Credential'];
export type CredentialsRevoked = components['schemas']['CredentialsRevoked'];
export type CurrentPlan = components['schemas']['CurrentPlan'];
export type DataConnections = components['schemas']['DataConnections'];
export type Delivery = components['schemas']['Delivery'];
export type DeliveryState = components['schemas']['DeliveryState'];
export type Direction = components['schemas']['Direction'];
export type Distribution = components['schemas']['Distribution'];
export type DuplicateRule = components['schemas']['DuplicateRule'];
export type Durability = components['schemas']['Durability'];
export type End = components['schemas']['End'];
export type EndNew = components['schemas']['EndNew'];
export type EndpointChange = components['schemas']['EndpointChange'];
export type Fault = components['schemas']['Fault'];
export type Feed = components['schemas']['Feed'];
export type FeedBacklog = components['schemas']['FeedBacklog'];
export type FeedChange = components['schemas']['FeedChange'];
export type FeedClass = components['schemas']['FeedClass'];
export type FeedLatency = components['schemas']['FeedLatency'];
export type FeedNew = components['schemas']['FeedNew'];
export type FeedSeen = components['schemas']['FeedSeen'];
export type FeedVolume = components['schemas']['FeedVolume'];
export type Figures = components['schemas']['Figures'];
export type Floor = components['schemas']['Floor'];
export type Form = components['schemas']['Form'];
export type Health = components['schemas']['Health'];
export type Hearing = components['schemas']['Hearing'];
export type Heartbeat = components['schemas']['Heartbeat'];
export type Histogram = components['schemas']['Histogram'];
export type HubState = components['schemas']['HubState'];
export type IdFilter = components['schemas']['IdFilter'];
export type Invitation = components['schemas']['Invitation'];
export type LatencyHistory = components['schemas']['LatencyHistory'];
export type LatencyKind = components['schemas']['LatencyKind'];
export type LatencyPoint = components['schemas']['LatencyPoint'];
export type LdmAccept = components['schemas']['LdmAccept'];
export type LdmAcceptNew = components['schemas']['LdmAcceptNew'];
export type LdmPeer = components['schemas']['LdmPeer'];
export type LdmPeers = components['schemas']['LdmPeers'];
export type LdmReport = components['schemas']['LdmReport'];
export type LdmSource = components['schemas']['LdmSource'];
export type LdmSourceListed = components['schemas']['LdmSourceListed'];
export type LdmSourceNew = components['schemas']['LdmSourceNew'];
export type LdmSourceSeen = components['schemas']['LdmSourceSeen'];
export type LdmUpstreamSeen = components['schemas']['LdmUpstreamSeen'];
export type LdmUpstreamState = components['schemas']['LdmUpstreamState'];
export type Leg = components['schemas']['Leg'];
export type LegCircuit = components['schemas']['LegCircuit'];
export type LimitShape = components['schemas']['LimitShape'];
export type LinkUse = components['schemas']['LinkUse'];
export type LostDelivery = components['schemas']['LostDelivery'];
export type LostPage = components['schemas']['LostPage'];
export type Maintenance = components['schemas']['Maintenance'];
export type Measurement = components['schemas']['Measurement'];
export type MinuteLatency = components['schemas']['MinuteLatency'];
export type NodeFeed = components['schemas']['NodeFeed'];
export type NodeSession = components['schemas']['NodeSession'];
export type NodeState = components['schemas']['NodeState'];
export type Objective = components['schemas']['Objective'];
export type ObjectiveWanted = components['schemas']['ObjectiveWanted'];
export type Offer = components['schemas']['Offer'];
export type Overview = components['schemas']['Overview'];
export type OwnReceiver = components['schemas']['OwnReceiver'];
export type PasswordChange = components['schemas']['PasswordChange'];
export type Path = components['schemas']['Path'];
export type PathFacts = components['schemas']['PathFacts'];
export type PathLatency = components['schemas']['PathLatency'];
export type PatternTest = components['schemas']['PatternTest'];
export type PatternTested = components['schemas']['PatternTested'];
export type Pin = components['schemas']['Pin'];
export type PinNew = components['schemas']['PinNew'];
export type Place = components['schemas']['Place'];
export type PlaceShape = components['schemas']['PlaceShape'];
export type Plan = components['schemas']['Plan'];
export type PlanSeen = components['schemas']['PlanSeen'];
export type Port = components['schemas']['Port'];
export type PortChange = components['schemas']['PortChange'];
export type PortNew = components['schemas']['PortNew'];
export type ProductListed = components['schemas']['ProductListed'];
export type ProductPage = components['schemas']['ProductPage'];
export type ProductTraced = components['schemas']['ProductTraced'];
export type Receipt = components['schemas']['Receipt'];
export type Receiver = components['schemas']['Receiver'];
export type ReceiverKind = components['schemas']['ReceiverKind'];
export type ReceiverNew = components['schemas']['ReceiverNew'];
export type Refusal = components['schemas']['Refusal'];
export type ReplacementAsked = components['schemas']['ReplacementAsked'];
export type Replication = components['schemas']['Replication'];
export type RequestMade = components['schemas']['RequestMade'];
export type RequestNew = components['schemas']['RequestNew'];
export type RequestSecret = components['schemas']['RequestSecret'];
export type RequestState = components['schemas']['RequestState'];
export type RequestStateShown = components['schemas']['RequestStateShown'];
export type Resend = components['schemas']['Resend'];
export type ResendKind = components['schemas']['ResendKind'];
export type ResendNew = components['schemas']['ResendNew'];
export type ResendState = components['schemas']['ResendState'];
export type Role = components['schemas']['Role'];
export type Scope = components['schemas']['Scope'];
export type SessionBegun = components['schemas']['SessionBegun'];
export type SessionShown = components['schemas']['SessionShown'];
export type Severity = components['schemas']['Severity'];
export type SignIn = components['schemas']['SignIn'];
export type SignInLink = components['schemas']['SignInLink'];
export type Silence = components['schemas']['Silence'];
export type SilenceBin = components['schemas']['SilenceBin'];
export type SilenceNew = components['schemas']['SilenceNew'];
export type Site = components['schemas']['Site'];
export type SiteChange = components['schemas']['SiteChange'];
export type SiteFeed = components['schemas']['SiteFeed'];
export type SiteLimit = components['schemas']['SiteLimit'];
export type SiteListed = components['schemas']['SiteListed'];
export type SiteNew = components['schemas']['SiteNew'];
export type SiteReceiver = components['schemas']['SiteReceiver'];
export type SiteSeen = components['schemas']['SiteSeen'];
export type SiteState = components['schemas']['SiteState'];
export type SiteWhole = components['schemas']['SiteWhole'];
export type SizeBin = components['schemas']['SizeBin'];
export type Stage = components['schemas']['Stage'];
export type Status = components['schemas']['Status'];
export type Stored = components['schemas']['Stored'];
export type Subscription = components['schemas']['Subscription'];
export type SubscriptionNew = components['schemas']['SubscriptionNew'];
export type Throughput = components['schemas']['Throughput'];
export type Timing = components['schemas']['Timing'];
export type Token = components['schemas']['Token'];
export type TokenMade = components['schemas']['TokenMade'];
export type TokenNew = components['schemas']['TokenNew'];
export type TokensEnded = components['schemas']['TokensEnded'];
export type Totals = components['schemas']['Totals'];
export type Trace = components['schemas']['Trace'];
export type Transport = components['schemas']['Transport'];
export type Tree = components['schemas']['Tree'];
export type TreeFeed = components['schemas']['TreeFeed'];
export type TreeSite = components['schemas']['TreeSite'];
export type TreeUpstream = components['schemas']['TreeUpstream'];
export type Upstream = components['schemas']['Upstream'];
export type UpstreamListed = components['schemas']['UpstreamListed'];
export type UpstreamNew = components['schemas']['UpstreamNew'];
export type UpstreamSeen = components['schemas']['UpstreamSeen'];
export type User = components['schemas']['User'];
export type UserChange = components['schemas']['UserChange'];
export type UserInvited = components['schemas']['UserInvited'];
export type UserNew = components['schemas']['UserNew'];
export type Volume = components['schemas']['Volume'];
export type VolumeHistory = components['schemas']['VolumeHistory'];
export type Who = components['schemas']['Who'];
export type Window = components['schemas']['Window'];
export type Problem = components['schemas']['Problem'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
