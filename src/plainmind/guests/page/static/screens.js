// All screens by the names they have in the address. Those without a list take the whole width.

import { days } from "./days.js";
import { entries } from "./entries.js";
import { graph } from "./graph.js";
import { health } from "./health.js";
import { map } from "./map.js";
import { recalls } from "./recalls.js";
import { review } from "./review.js";
import { search } from "./search.js";
import { start } from "./start.js";
import { tags } from "./tags.js";
import { talks } from "./talks.js";

export const screens = { search, days, talks, recalls, start, review, entries, tags, graph, map, health };
