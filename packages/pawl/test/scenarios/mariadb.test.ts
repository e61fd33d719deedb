import { ifAsked } from "../conformance/conforms.js";
import { mysqlFamily } from "../fixtures.js";
import { scenarios } from "./scenarios.js";

ifAsked("mariadb", (url) => scenarios("MariaDB", mysqlFamily(url)));
