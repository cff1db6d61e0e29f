// SPDX-License-Identifier: Apache-2.0
// playwright: from tests/node, where all packages of npm are.
import { createRequire } from "node:module";

export const { chromium } = createRequire(new URL("../node/package.json", import.meta.url))("playwright-core");
