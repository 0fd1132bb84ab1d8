// What a tab has of its own and a view inside another program has not: an address, a history, a store.
const location = { hash: "#/", pathname: "/", search: "", reload() {} };
const history = {
  past: [],
  pushState(_state, _title, hash) {
    this.past.push(location.hash);
    location.hash = hash;
  },
  replaceState(_state, _title, hash) {
    location.hash = hash;
  },
  back() {
    location.hash = this.past.pop() ?? "#/";
    dispatchEvent(new Event("popstate"));
  },
};
const stored = new Map();
const localStorage = { getItem: (name) => stored.get(name) ?? null, setItem: (name, text) => stored.set(name, text) };
