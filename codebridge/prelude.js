// The API that a program sees, evaluated once in a fresh runtime before any
// program. Its value is {start, settle, finish}, called by guest.go.
//
// It speaks to the host in lines through print, the engine's own function:
// one letter, then text without line breaks. A program can reach none of what
// is captured here; what it does to prototypes must not break this code, so
// nothing below relies on iterators, on array methods or on assignment to
// elements of arrays that a setter could catch.
(function (host) {
  "use strict";
  const {apply, construct, ownKeys, getPrototypeOf, setPrototypeOf, defineProperty, get: reflectGet} = Reflect;
  const {create, freeze, keys, getOwnPropertyDescriptor: descriptorOf} = Object;
  const {parse, stringify} = JSON;
  const {isArray} = Array;
  const print = globalThis.print;
  const NativePromise = Promise, PromiseProto = Promise.prototype, nativeThen = PromiseProto.then;
  const ErrorCtor = Error, TypeErrorCtor = TypeError, BigIntCtor = BigInt, StringCtor = String, ProxyCtor = Proxy;
  const ObjectProto = Object.prototype;
  const call = (f) => (self, a, b) => apply(f, self, [a, b]);
  const slice = call(StringCtor.prototype.slice), charCodeAt = call(StringCtor.prototype.charCodeAt), indexOf = call(StringCtor.prototype.indexOf);
  const startsWith = call(StringCtor.prototype.startsWith), trim = call(StringCtor.prototype.trim);
  const hasOwn = call(ObjectProto.hasOwnProperty);
  const functionText = call(Function.prototype.toString);
  const mapGet = call(Map.prototype.get), mapSet = call(Map.prototype.set), mapDelete = call(Map.prototype.delete);
  const mapForEach = call(Map.prototype.forEach);
  const weakAdd = call(WeakSet.prototype.add), weakHas = call(WeakSet.prototype.has);
  const {iterator, toPrimitive} = Symbol, asyncIterator = Symbol.asyncIterator;

  // What the engine adds for itself, and every way to compile text.
  {
    const made = [function () {}, async function () {}, function* () {}, async function* () {}];
    for (let i = 0; i < made.length; i++) delete getPrototypeOf(made[i]).constructor;
    const gone = ["std", "os", "bjson", "print", "scriptArgs", "console", "performance", "navigator", "gc", "setTimeout", "setInterval",
      "clearTimeout", "clearInterval", "eval", "Function", "SharedArrayBuffer", "Atomics", "QJS_PROXY_VALUE", "DOMException"];
    for (let i = 0; i < gone.length; i++) delete globalThis[gone[i]];
  }

  const hidden = (o, k, v) => defineProperty(o, k, {value: v, writable: true, enumerable: false, configurable: true});
  const fixed = (o, k, v) => defineProperty(o, k, {value: v, writable: false, enumerable: true, configurable: false});

  const {toJSON, preview, shape, shortError, plain, isA, isObject, isError} = host.values(isToolName);
  const isPromise = (v) => isObject(v) && isA(v, PromiseProto);

  // ---- Rejections that nobody handles -------------------------------------
  //
  // The engine reports none. A promise is handled once somebody reads its
  // "constructor": await, then, Promise.all and return in an async function
  // all do. Promises made by Promise's own functions, by then and by the calls
  // below are watched; the host turns async functions into ones that use them.
  const handled = new WeakSet(), rejected = new Map();
  let quiet = false;
  function markHandled(p) {
    if (!quiet && isObject(p)) { weakAdd(handled, p); mapDelete(rejected, p); }
  }
  function watch(p) {
    const before = quiet;
    quiet = true;
    try {
      apply(nativeThen, p, [undefined, (e) => { if (!weakHas(handled, p)) mapSet(rejected, p, e); }]);
    } finally { quiet = before; }
    return p;
  }
  function WatchedPromise(executor) {
    if (!new.target) throw new TypeErrorCtor("Promise must be called with new");
    return watch(construct(NativePromise, [executor], new.target === WatchedPromise ? NativePromise : new.target));
  }
  {
    const names = ownKeys(NativePromise);
    for (let i = 0; i < names.length; i++) {
      if (names[i] !== "prototype") defineProperty(WatchedPromise, names[i], descriptorOf(NativePromise, names[i]));
    }
    defineProperty(WatchedPromise, "prototype", {value: PromiseProto, writable: false, enumerable: false, configurable: false});
    defineProperty(PromiseProto, "constructor", {
      get() { markHandled(this); return NativePromise; },
      set(v) { hidden(this, "constructor", v); },
      enumerable: false, configurable: false,
    });
    hidden(PromiseProto, "then", function then(ok, bad) {
      markHandled(this);
      return watch(apply(nativeThen, this, [ok, bad]));
    });
    hidden(globalThis, "Promise", WatchedPromise);
  }

  // ---- Errors -------------------------------------------------------------
  function errorJSON(e) {
    const o = create(null);
    try {
      if (isError(e)) {
        o.Name = slice(plain(e.name, "Error"), 0, 200);
        o.Message = slice(plain(e.message, ""), 0, 8000);
        o.Stack = slice(plain(e.stack, ""), 0, 8000);
        if (isA(e, ToolError.prototype)) o.Code = slice(plain(e.code, ""), 0, 100);
      } else {
        o.Thrown = true;
        o.Message = typeof e === "string" ? slice(e, 0, 8000) : preview(e, 2000);
      }
    } catch (x) {
      o.Thrown = true;
      o.Message = "a value that cannot be read was thrown";
    }
    return stringify(o);
  }
  class ToolError extends ErrorCtor {
    constructor(e, stack) {
      super(e.message);
      this.code = e.code;
      this.tool = e.tool;
      this.result = e.result;
      if (stack !== undefined) hidden(this, "stack", stack);
    }
  }
  hidden(ToolError.prototype, "name", "ToolError");
  hidden(globalThis, "ToolError", ToolError);

  // ---- Console ------------------------------------------------------------
  let maxLog = 0, maxLines = host.maxLines, logged = 0, lines = 0, dropped = 0;
  function format(v) {
    if (typeof v === "string") return v;
    if (isError(v)) return shortError(v);
    if (v === undefined) return "undefined";
    if (typeof v === "number" || typeof v === "bigint") return "" + v;
    return preview(v, 8000);
  }
  function log() {
    if (lines >= maxLines || logged > maxLog) { drop(); return; }
    let s = "";
    for (let i = 0; i < arguments.length; i++) s += (i > 0 ? " " : "") + slice(format(arguments[i]), 0, maxLog + 1);
    if (logged + s.length > maxLog) { logged = maxLog + 1; drop(); return; }
    lines++;
    logged += s.length;
    print("l" + stringify(s));
  }
  function drop() {
    if (dropped++ % 1000 === 0) print("n" + dropped);
  }
  {
    const console = create(null), levels = ["log", "info", "debug", "warn", "error", "table", "dir", "trace"];
    for (let i = 0; i < levels.length; i++) fixed(console, levels[i], log);
    hidden(globalThis, "console", freeze(console));
  }

  // ---- Calls --------------------------------------------------------------
  const pending = create(null);
  let lastID = 0, maxArgs = 0;

  const isDigit = (k) => k !== "" && charCodeAt(k, 0) >= 48 && charCodeAt(k, 0) <= 57;
  function pendingProto(label) {
    return new ProxyCtor(create(PromiseProto), {
      get(target, k, self) {
        if (k === "toJSON") return () => "[a promise: write await " + label + "(...)]";
        if (k === toPrimitive) return () => "[a promise: write await " + label + "(...)]";
        if (k === iterator || k === asyncIterator) throw new TypeErrorCtor(label + "(...) is a promise: write await " + label + "(...) and loop over its result");
        if (typeof k === "symbol" || k in PromiseProto) return reflectGet(PromiseProto, k, self);
        throw new TypeErrorCtor(label + "(...) is a promise: write (await " + label + "(...))" + (isDigit(k) ? "[" + k + "]" : "." + k));
      },
    });
  }
  const kinds = {
    search: {label: "openclaw.tools.search", proto: pendingProto("openclaw.tools.search"), settle: hitList},
    describe: {label: "openclaw.tools.describe", proto: pendingProto("openclaw.tools.describe"), settle: (v) => v},
    call: {label: "openclaw.tools.call", proto: pendingProto("openclaw.tools.call"), settle: envelope},
  };
  function invoke(fn, prepare) {
    const kind = kinds[fn], stack = plain(new ErrorCtor().stack, "");
    let entry;
    const p = new WatchedPromise((resolve, reject) => {
      const args = prepare();
      const j = toJSON(args, maxArgs, true);
      if (j.over) throw new TypeErrorCtor("the arguments are larger than " + maxArgs + " bytes");
      entry = {kind, resolve, reject, stack, promise: undefined, id: typeof args[0] === "string" ? args[0] : ""};
      pending[++lastID] = entry;
      print("c" + lastID + " " + fn + " " + j.text);
    });
    if (entry !== undefined) entry.promise = p;
    setPrototypeOf(p, kind.proto);
    return p;
  }
  function kindOf(v) {
    if (v === null) return "null";
    if (isArray(v)) return "an array";
    if (isPromise(v)) return "a promise (write await before the call that made it)";
    return typeof v === "object" ? "an object" : typeof v === "undefined" ? "undefined" : "a " + typeof v;
  }
  function idOf(v, fn) {
    if (typeof v === "string" && trim(v) !== "") return v;
    if (isToolName(v)) return mapGet(toolNames, v);
    if (isObject(v) && !isArray(v) && !isPromise(v)) {
      const o = isObject(v.tool) ? v.tool : v;
      if (typeof o.id === "string") return o.id;
      if (typeof o.toolId === "string") return o.toolId;
      if (typeof o.tool === "string") return o.tool;
      if (typeof o.name === "string") return o.name;
    }
    throw new TypeErrorCtor("openclaw.tools." + fn + " needs a tool id, for example hits[0].id, but got " + kindOf(v) +
      (v === undefined ? "; did the search find nothing?" : ""));
  }
  function argsOf(v, id) {
    if (v === undefined || v === null) return {};
    if (typeof v === "string") {
      let o;
      try { o = parse(v); } catch { o = undefined; }
      if (isObject(o) && !isArray(o)) return o;
    } else if (isObject(v) && typeof v === "object" && !isArray(v) && !isPromise(v)) {
      return v;
    }
    throw new TypeErrorCtor("the arguments must be one object: openclaw.tools.call(" + stringify(id) + ", {name: value}), but got " + kindOf(v));
  }
  function search(query, options) {
    return invoke("search", () => {
      if (isObject(query) && !isArray(query) && !isPromise(query) && typeof query.query === "string") {
        options = options === undefined && query.limit !== undefined ? {limit: query.limit} : options;
        query = query.query;
      }
      if (typeof options === "number") options = {limit: options};
      if (typeof query !== "string" && !isObject(query)) throw new TypeErrorCtor("openclaw.tools.search needs a query text, but got " + kindOf(query));
      return options === undefined ? [query] : [query, options];
    });
  }
  function describe(id, options) {
    return invoke("describe", () => options === undefined ? [idOf(id, "describe")] : [idOf(id, "describe"), options]);
  }
  function callTool(id, args, more) {
    return invoke("call", () => {
      if (typeof id === "string" && typeof args === "string" && isObject(more)) return ["mcp:" + id + ":" + args, argsOf(more, id)];
      if (args === undefined && isObject(id) && typeof id === "object" && !isPromise(id)) {
        args = hasOwn(id, "args") ? id.args : hasOwn(id, "arguments") ? id.arguments : undefined;
      }
      id = idOf(id, "call");
      return [id, argsOf(args, id)];
    });
  }

  // A tool's name used as a function: tools.list_files({…}), tools.files.list({…}).
  const toolNames = new Map();
  function isToolName(v) { return typeof v === "function" && mapGet(toolNames, v) !== undefined; }
  function toolName(path) {
    const p = new ProxyCtor(function () {}, {
      apply(target, self, argv) {
        const id = path, n = argv.length, first = argv[0];
        if (n > 1) return invoke("call", () => { throw new TypeErrorCtor("pass one object of arguments: openclaw.tools.call(" + stringify(id) + ", {name: value})"); });
        return callTool(id, first);
      },
      get(target, k) {
        if (typeof k === "symbol" || k === "then" || k === "toJSON" || k === "prototype") return undefined;
        if (k === "name") return path;
        return toolName(startsWith(path, "mcp:") ? path + "." + k : "mcp:" + path + ":" + k);
      },
    });
    mapSet(toolNames, p, path);
    return p;
  }
  const named = (known) => new ProxyCtor(create(null), {
    get(target, k) {
      if (typeof k === "symbol" || k === "then" || k === "toJSON") return undefined;
      if (known !== null && hasOwn(known, k)) return known[k];
      if (k in ObjectProto) return ObjectProto[k];
      return toolName(k);
    },
    has() { return false; },
  });
  {
    const tools = create(named(null)), openclaw = create(named(tools));
    fixed(tools, "search", search);
    fixed(tools, "describe", describe);
    fixed(tools, "call", callTool);
    fixed(openclaw, "tools", freeze(tools));
    freeze(openclaw);
    hidden(globalThis, "openclaw", openclaw);
    hidden(globalThis, "tools", tools);

    const instead = (name, advice) => hidden(globalThis, name, () => { throw new ErrorCtor(name + " is not available here: " + advice); });
    const useTools = "find a tool with openclaw.tools.search(...) and run it with openclaw.tools.call(id, args)";
    instead("fetch", useTools);
    instead("setTimeout", "there are no timers, await openclaw.tools.call(id, args) waits as long as the tool takes");
    instead("setInterval", "there are no timers, await openclaw.tools.call(id, args) waits as long as the tool takes");
    hidden(globalThis, "require", (what) => {
      if (typeof what === "string" && (startsWith(what, "openclaw") || startsWith(what, "tools"))) return openclaw;
      throw new ErrorCtor("require is not available here: " + useTools);
    });
    // import(…) in a program is written as this name by the host.
    hidden(globalThis, host.importName, () => WatchedPromise.reject(new ErrorCtor("import is not available here: " + useTools)));
  }

  // A hit list answers to the names that models expect around it.
  function hitList(v) {
    if (isArray(v)) {
      const same = ["results", "hits", "tools"];
      for (let i = 0; i < same.length; i++) hidden(v, same[i], v);
    }
    return v;
  }
  // An envelope {tool, result} passes on what is not its own: r.content is
  // r.result.content, r.items and r.result.items are r.result.details.items.
  function envelope(v, alias) {
    const r = v.result;
    if (!isObject(r)) return v;
    let details;
    switch (alias) {
    case "s": details = r.structuredContent; break;
    case "d": details = v.details; delete v.details; break;
    case "t": details = joinTexts(r.content); break;
    }
    defineProperty(r, "details", {value: details, writable: true, enumerable: true, configurable: true});
    const inDetails = (k) => typeof details === "object" && details !== null && (isArray(details) ? k in details : hasOwn(details, k));
    const find = (k, inResult) => {
      if (k === "then" || k === "toJSON") return undefined;
      if (inResult && typeof k === "string" && hasOwn(r, k)) return r[k];
      return inDetails(k) ? details[k] : ObjectProto[k];
    };
    const has = (target, k) => k in ObjectProto || inDetails(k);
    setPrototypeOf(r, new ProxyCtor(create(ObjectProto), {has, get: (target, k) => find(k, false)}));
    setPrototypeOf(v, new ProxyCtor(create(ObjectProto), {has, get: (target, k) => find(k, true)}));
    return v;
  }
  function joinTexts(content) {
    let s = "", n = 0;
    if (isArray(content)) {
      for (let i = 0; i < content.length; i++) {
        const b = content[i];
        if (isObject(b) && b.type === "text" && typeof b.text === "string") s += (n++ > 0 ? "\n" : "") + b.text;
      }
    }
    return s;
  }

  function seedRandom(a, b, c, d) {
    // sfc32: small, and never the same in two programs
    const next = () => {
      const t = (((a + b) | 0) + d) | 0;
      d = (d + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (c << 21) | (c >>> 11);
      c = (c + t) | 0;
      return t >>> 0;
    };
    for (let i = 0; i < 12; i++) next();
    hidden(Math, "random", () => (next() * 2097152 + (next() >>> 11)) / 9007199254740992);
  }

  // ---- Called by the host -------------------------------------------------
  async function settled(v) {
    // An array or object of promises that the body forgot to await.
    if (isArray(v)) {
      let found = false;
      for (let i = 0; i < v.length && i < 1000 && !found; i++) found = isObject(v[i]) && isPromise(v[i]);
      if (!found) return v;
      const out = create(null);
      for (let i = 0; i < v.length; i++) out[i] = await v[i];
      const a = [];
      for (let i = 0; i < v.length; i++) defineProperty(a, i, {value: out[i], writable: true, enumerable: true, configurable: true});
      return a;
    }
    if (isObject(v) && typeof v === "object" && getPrototypeOf(v) === ObjectProto) {
      const ks = keys(v);
      let found = false;
      for (let i = 0; i < ks.length && i < 1000 && !found; i++) {
        const d = descriptorOf(v, ks[i]);
        found = d !== undefined && hasOwn(d, "value") && isPromise(d.value);
      }
      if (!found) return v;
      const o = {};
      for (let i = 0; i < ks.length; i++) defineProperty(o, ks[i], {value: await v[ks[i]], writable: true, enumerable: true, configurable: true});
      return o;
    }
    return v;
  }
  function oversizeJSON(j, v) {
    const o = create(null);
    o.Bytes = j.size;
    o.More = j.more;
    o.Shape = slice(shape(v, 2), 0, 600);
    return stringify(o);
  }
  async function runBody(body, implicit, maxOutput) {
    try {
      let v = await body();
      // A program that is one function, not called.
      if (implicit && typeof v === "function" && !isToolName(v) && !startsWith(functionText(v), "class")) v = await v();
      v = await settled(v);
      const j = toJSON(v, maxOutput, false);
      if (j.over) print('v{"OK":true,"Over":' + oversizeJSON(j, v) + "}");
      else print('v{"OK":true,"Nothing":' + (v === undefined) + ',"Value":' + j.text + "}");
    } catch (e) {
      print('v{"OK":false,"Error":' + errorJSON(e) + "}");
    }
    for (let id = 1; id <= lastID; id++) {
      const c = pending[id];
      if (c !== undefined && !weakHas(handled, c.promise)) unwaited += (unwaited === "" ? "" : ",") + stringify(c.kind.label + "(" + slice(stringify(c.id), 0, 200) + ")");
    }
  }
  let unwaited = "";
  return {
    start(body, options) {
      const {implicit, maxOutput, maxArgs: max, seed} = parse(options);
      maxLog = maxOutput;
      maxArgs = max;
      seedRandom(seed[0] | 0, seed[1] | 0, seed[2] | 0, seed[3] | 0);
      runBody(body, implicit, maxOutput);
    },
    settle(answer) {
      const end = indexOf(answer, "\n"), head = parse(slice(answer, 0, end)), json = slice(answer, end + 1);
      const id = head[0], ok = head[1], alias = head[2], big = head[3];
      const c = pending[id];
      if (c === undefined) return;
      delete pending[id];
      try {
        const v = big === "" ? parse(json) : parse(json, (k, x) => typeof x === "string" && startsWith(x, big) ? BigIntCtor(slice(x, big.length)) : x);
        if (ok) c.resolve(c.kind.settle(v, alias));
        else c.reject(new ToolError(v, c.stack));
      } catch (e) {
        c.reject(e);
      }
    },
    finish() {
      let errors = "", n = 0;
      mapForEach(rejected, (e) => { if (n++ < 10) errors += (errors === "" ? "" : ",") + errorJSON(e); });
      print('u{"Errors":[' + errors + '],"Count":' + n + ',"Unwaited":[' + unwaited + '],"Dropped":' + dropped + "}");
    },
  };
})
