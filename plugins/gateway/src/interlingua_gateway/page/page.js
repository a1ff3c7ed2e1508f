// The admin page: every table is read from /admin/api with the key that the administrator typed.
"use strict";

const find = (id) => document.getElementById(id);
const STORED = "interlingua-gateway-key";
let secret = sessionStorage.getItem(STORED) || "";
let entered = false;
let timer = 0;

class Refused extends Error {}

async function ask(method, path, body) {
  const headers = secret ? { authorization: `Bearer ${secret}` } : {}; // without a key, a cookie may be of a login
  if (body !== undefined) headers["content-type"] = "application/json";
  const options = { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" };
  const answer = await fetch(`/admin/api${path}`, options);
  const value = await answer.json();
  if (answer.status === 401) {
    find("provider").hidden = !value.login;
    throw new Refused(value.error);
  }
  if (!answer.ok) throw new Error(value.error);
  return value;
}

function make(tag, facts = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.map((child) => child ?? ""));
  return node;
}

// columns: {title: row => text or nodes}; a title that begins with # is a number
function show(place, rows, columns, none, look = () => "") {
  if (!rows.length) return find(place).replaceChildren(make("p", { class: "none" }, none));
  const names = Object.keys(columns);
  const title = (name) => name.replace("#", "");
  const kind = (name) => (name.startsWith("#") ? "number" : name === "" ? "buttons" : "");
  const head = names.map((name) => make("th", { scope: "col", class: kind(name) }, title(name) || "Change"));
  const body = rows.map((row) => {
    const cells = names.map((name) => {
      const found = columns[name](row);
      const nodes = Array.isArray(found) ? found : [String(found ?? "")];
      const empty = nodes.every((node) => node === "") ? " empty" : "";
      return make("td", { "data-name": title(name), class: kind(name) + empty }, make("div", {}, ...nodes));
    });
    return make("tr", { class: look(row) }, ...cells);
  });
  find(place).replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
}

const usd = (amount) => (amount === null ? "" : `$${Number(amount).toFixed(4)}`);
const time = (text) => (text ? new Date(text.replace(" ", "T")).toLocaleString() : "");
const button = (text, about, onclick) =>
  make("button", { type: "button", "aria-label": `${text} ${about}`, onclick: () => guard(onclick) }, text);

function budget(owner) {
  if (owner.budget_usd === null) return "no limit";
  return usd(owner.budget_usd) + (owner.budget_days ? ` in ${owner.budget_days} days` : "");
}

function state(key) {
  if (key.revoked) return "revoked";
  return key.expires && new Date(key.expires.replace(" ", "T")) <= new Date() ? "expired" : "in use";
}

function fill(form, values) {
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements[name];
    if (!field) continue;
    if (field.type === "checkbox") field.checked = value;
    else field.value = Array.isArray(value) ? value.join(" ") : value ?? "";
  }
}

function numbers(form) {
  const number = (name) => (form.elements[name].value.trim() === "" ? null : Number(form.elements[name].value));
  const amount = form.elements.budget_usd.value.trim();
  return { budget_usd: amount === "" ? null : amount, budget_days: number("budget_days"), number };
}

function open(dialog, save) {
  const alert = dialog.querySelector(".error");
  if (alert) alert.textContent = "";
  const run = async (event) => {
    event.preventDefault();
    try {
      const newSecret = await save();
      dialog.close();
      const focused = document.activeElement;
      if (newSecret) tell(newSecret);
      else if (focused === document.body || dialog.contains(focused)) { // the button was replaced
        find(`${section()}-title`).focus();
      }
    } catch (error) {
      if (error instanceof Refused) return leave(error.message);
      alert.textContent = error.message;
    }
  };
  const form = dialog.querySelector("form");
  if (form) form.onsubmit = run;
  else if (save) find("sure").onclick = run;
  dialog.showModal();
}

function sure(text, action) {
  find("sure-text").textContent = text;
  open(find("sure-dialog"), async () => {
    const newSecret = await action();
    await render();
    return newSecret;
  });
}

function tell(newSecret) {
  find("new-secret").textContent = newSecret;
  open(find("secret-dialog"));
}

async function editKey(key) {
  const form = find("key-form");
  form.reset();
  const teams = await ask("GET", "/teams");
  form.elements.team.replaceChildren(
    make("option", { value: "" }, "none"), ...teams.map((team) => make("option", { value: team.name }, team.name)));
  find("key-dialog-title").textContent = key ? `Change the key ${key.id}` : "Make a key";
  if (key) {
    const local = (at) => new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
    fill(form, { ...key, expires: key.expires ? local(new Date(key.expires.replace(" ", "T"))) : "" });
  }
  open(find("key-dialog"), async () => {
    const { number, ...limits } = numbers(form);
    const expires = form.elements.expires.value;
    const given = {
      ...limits,
      name: form.elements.name.value, team: form.elements.team.value, admin: form.elements.admin.checked,
      keep_answers: form.elements.keep_answers.checked,
      requests_per_minute: number("requests_per_minute"), tokens_per_minute: number("tokens_per_minute"),
      models: form.elements.models.value.split(/\s+/).filter(Boolean),
      passes: form.elements.passes.value.split(/\s+/).filter(Boolean),
      expires: expires ? new Date(expires).toISOString() : null,
    };
    const made = await (key ? ask("PATCH", `/keys/${key.id}`, given) : ask("POST", "/keys", given));
    await render();
    return made.secret;
  });
}

function editTeam(team) {
  const form = find("team-form");
  form.reset();
  find("team-dialog-title").textContent = team ? `Change the team ${team.name}` : "Make a team";
  if (team) fill(form, team);
  form.elements.name.readOnly = Boolean(team);
  open(find("team-dialog"), async () => {
    const { number, ...limits } = numbers(form);
    await ask("PUT", `/teams/${encodeURIComponent(form.elements.name.value)}`, limits);
    await render();
  });
}

const views = {
  async keys() {
    const rows = await ask("GET", "/keys");
    show("keys-table", rows, {
      Name: (key) => key.name, Id: (key) => key.id, State: state, Team: (key) => key.team,
      "#Spent": (key) => usd(key.spent.cost_usd), Budget: budget, "#Requests": (key) => key.spent.requests,
      Models: (key) => key.models.join(" ") || "all", Expires: (key) => time(key.expires),
      "": (key) => key.revoked ? [] : [
        button("Change", key.name, () => editKey(key)),
        button("Rotate", key.name, () => sure(`Replace the key of ${key.name}? The present one ends at once.`, async () =>
          (await ask("POST", `/keys/${key.id}/rotate`)).secret)),
        button("Revoke", key.name, () => sure(`Revoke the key of ${key.name}? It cannot be used again.`, async () => {
          await ask("POST", `/keys/${key.id}/revoke`);
        })),
      ],
    }, "No key has been made.", (key) => (state(key) === "in use" ? "" : "gone"));
  },
  async teams() {
    show("teams-table", await ask("GET", "/teams"), {
      Name: (team) => team.name, "#Spent": (team) => usd(team.spent.cost_usd), Budget: budget,
      "#Requests": (team) => team.spent.requests,
      "": (team) => [
        button("Change", team.name, () => editTeam(team)),
        button("Remove", team.name, () => sure(`Remove the team ${team.name}? Its keys stay, without a team.`, async () => {
          await ask("DELETE", `/teams/${encodeURIComponent(team.name)}`);
        })),
      ],
    }, "No team has been made.");
  },
  async spending() {
    const by = find("by").value.split(",");
    const names = new Map((await ask("GET", "/keys")).map((key) => [key.id, key.name]));
    const groups = {
      key: ["Key", (row) => `${names.get(row.key) ?? ""} ${row.key}`], team: ["Team", (row) => row.team || "none"],
      model: ["Model", (row) => row.model || "none"], day: ["Day", (row) => row.day],
    };
    show("spending-table", await ask("GET", `/spending?by=${by}&days=${find("days").value}`), {
      ...Object.fromEntries(by.map((name) => groups[name])),
      "#Cost": (row) => usd(row.cost_usd), "#Requests": (row) => row.requests,
      "#Input tokens": (row) => row.input_tokens.toLocaleString(),
      "#Output tokens": (row) => row.output_tokens.toLocaleString(),
    }, "Nothing was spent.");
  },
  async requests() {
    show("requests-table", await ask("GET", "/requests"), {
      Since: (row) => time(row.created), Key: (row) => row.key, Team: (row) => row.team, Model: (row) => row.model,
      "#At most": (row) => usd(row.cost_usd),
    }, "No request is in progress.");
  },
  async errors() {
    show("errors-table", await ask("GET", "/errors"), {
      Time: (row) => time(row.time), Error: (row) => row.error, "#Status": (row) => row.status, Key: (row) => row.key,
      API: (row) => row.api, Model: (row) => row.model, Request: (row) => row.id,
    }, "No request has failed.");
  },
  async routes() {
    const found = await ask("GET", "/routes");
    find("problems").replaceChildren(...found.problems.map((text) => make("li", {}, text)));
    const rows = found.routes.flatMap((route) => route.models.map((model) => ({ ...model, match: route.match })));
    const health = (row) => (found.health[row.match] ?? {})[row.deployment ?? row.model] ?? {};
    show("routes-table", rows, {
      Name: (row) => row.match, Model: (row) => row.model, Deployment: (row) => row.deployment,
      Health: (row) => health(row).status, "#Failures": (row) => health(row).failures, "#Open": (row) => health(row).open,
      "#Input, $ a million": (row) => row.input_per_mtok_usd, "#Output, $ a million": (row) => row.output_per_mtok_usd,
    }, "The configuration has no route: every name is read as provider:name.");
  },
  async changes() {
    show("changes-table", await ask("GET", "/changes"), {
      Time: (row) => time(row.time), By: (row) => row.actor, Change: (row) => row.action, Of: (row) => row.subject,
      Details: (row) => Object.entries(row.details).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", "),
    }, "Nothing has been changed.");
  },
};

const section = () => (location.hash.slice(1) in views ? location.hash.slice(1) : "keys");

async function guard(action) {
  try {
    find("failure").textContent = "";
    await action();
  } catch (error) {
    if (error instanceof Refused) leave(error.message);
    else find("failure").textContent = error.message;
  }
}

async function render() {
  clearTimeout(timer);
  const now = section();
  for (const name of Object.keys(views)) find(name).hidden = name !== now;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${now}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  await guard(views[now]);
  if (now === "requests" && entered) timer = setTimeout(render, 2000);
}

async function enter(quiet = false) {
  const given = secret;
  try {
    const admin = await ask("GET", "/me");
    if (secret) sessionStorage.setItem(STORED, secret);
    entered = true;
    find("admin").textContent = admin.id === admin.name ? admin.name : `${admin.name} (${admin.id})`;
    find("login").hidden = true;
    find("console").hidden = find("who").hidden = false;
    find("login-form").reset();
    find("login-error").textContent = "";
    await render();
    find(`${section()}-title`).focus();
  } catch (error) {
    if (given === secret) leave(quiet ? "" : error.message); // unless a key was typed meanwhile
  }
}

function leave(reason = "") {
  secret = "";
  entered = false;
  clearTimeout(timer);
  sessionStorage.removeItem(STORED);
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  for (const place of document.querySelectorAll("[id$='-table']")) place.replaceChildren();
  find("login").hidden = false;
  find("console").hidden = find("who").hidden = true;
  find("login-error").textContent = reason;
  find("secret").focus();
}

find("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  secret = find("secret").value.trim();
  enter();
});
find("leave").addEventListener("click", () => guard(async () => {
  if (!secret) await ask("POST", "/logout");
  leave();
}));
find("add-key").addEventListener("click", () => guard(() => editKey(null)));
find("add-team").addEventListener("click", () => guard(() => editTeam(null)));
find("by").addEventListener("change", render);
find("days").addEventListener("change", render);
find("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(find("new-secret").textContent);
  find("notice").textContent = "The key was copied.";
});
find("secret-dialog").addEventListener("close", () => { find("new-secret").textContent = ""; });
for (const close of document.querySelectorAll("[data-close]")) {
  close.addEventListener("click", () => close.closest("dialog").close());
}
window.addEventListener("hashchange", async () => {
  if (!entered) return;
  await render();
  find(`${section()}-title`).focus();
});
find("secret").focus();
enter(!secret);
