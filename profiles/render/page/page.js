// SPDX-License-Identifier: BSD-3-Clause
// Draws the plots and tables of the page from the JSON in #data. Uses the modules of D3 if the page holds them.
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const plots = typeof d3 !== "undefined";
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawers = [];  // called when the width or the colour scheme changes

// ---- numbers and elements

function short(value, digits = 4) { return String(Number(value.toPrecision(digits))); }
function time(ns) {
  const size = Math.abs(ns);
  return size >= 1e12 ? grouped.format(Number((ns / 1e9).toPrecision(4))) + " s" : size >= 1e9 ? short(ns / 1e9) + " s" : size >= 1e6 ? short(ns / 1e6) + " ms"
       : size >= 1e3 ? short(ns / 1e3) + " µs" : short(ns, 3) + " ns";
}
function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < 4) count /= 1024, ++unit;
  return short(count, 3) + " " + units[unit];
}
const tick_time = ns => ns === 0 ? "0" : time(ns);
// null: not known. Nothing else is no share.
const percent = share => share >= 0 && share <= 1 && share !== null ? (100 * share).toFixed(share < 0.0995 ? 1 : 0) + "%" : "-";
const grouped = new Intl.NumberFormat("en");
const count = n => grouped.format(n);

function element(name, attributes = {}, ...children) {
  const out = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) out.addEventListener(key.slice(2), value);
    else if (value === true) out.setAttribute(key, "");
    else if (value !== false && value != null) out.setAttribute(key, value);
  out.append(...children);
  return out;
}
const body = id => document.querySelector("#" + id + " > .body");
let ids = 0;
const unique = stem => stem + "-" + ++ids;

/// The numbers that packed() of profiles/render/page_data.hpp wrote. NaN: no value.
function unpack(text) {
  const raw = atob(text), out = new Float64Array(raw.length >> 1);
  for (let i = 0; i < out.length; ++i) {
    const code = raw.charCodeAt(2 * i) | raw.charCodeAt(2 * i + 1) << 8;
    out[i] = code === 0 ? NaN : 2 ** ((code - 1) / 1280) - 1;
  }
  return out;
}

/// Radio buttons as a labelled group.
function choice(label, options, chosen, change) {
  const name = unique("choice");
  return element("fieldset", {}, element("legend", {}, label), ...options.map(([value, text]) =>
    element("label", {}, element("input", {type: "radio", name, value, checked: value === chosen, onchange: () => change(value)}), " " + text)));
}
function selection(label, options, change) {
  const select = element("select", {onchange: () => change(select.value)}, ...options.map(([value, text]) => element("option", {value}, text)));
  return element("label", {}, label + " ", select);
}
function draw_always(host, draw) {
  drawers.push(() => { if (host.isConnected && host.clientWidth > 0) draw(); });
  draw();
}
function say_no_plots(host) {
  host.append(element("p", {class: "missing"}, "This build of latecomer lacks the plotting library, so the page has tables only."));
}

// ---- tables

/// A plain table. `rows` holds texts. `level(i)`: how far the name of row i is indented.
function small_table(caption, heads, rows, level = () => 0) {
  return element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...heads.map((h, i) => element("th", {scope: "col", class: i ? "" : "text"}, h)))),
    element("tbody", {}, ...rows.map((row, k) => element("tr", {}, ...row.map((text, i) =>
      i ? element("td", {class: "number"}, text) : element("th", {scope: "row", class: "text level" + Math.min(3, level(k))}, text))))));
}

/// A table that sorts, searches, turns pages, and opens a row for details.
/// o.short: the first column does not break. o.columns: {name, title, value(row): to sort by, text(row), kind: "text" or "number", width: "", "middle" or "minor"}.
function big_table(host, o) {
  const page_size = 25;
  const first_order = o.rows.map((_, i) => i);
  let order = first_order, at = 0, sorted = null, up = false, words = [];
  const opened = new Set(o.opened || []);
  const searched = o.rows.map(() => null);
  const status = element("span", {role: "status"});
  const input = element("input", {type: "search", id: unique("search"), oninput: () => {
    words = input.value.toLowerCase().split(/\s+/).filter(w => w);
    at = 0;
    arrange();
  }});
  const back = element("button", {type: "button", onclick: () => { at -= page_size; show(); }}, "Previous");
  const next = element("button", {type: "button", onclick: () => { at += page_size; show(); }}, "Next");
  const heads = o.columns.map((c, i) => element("th", {scope: "col", class: (c.kind === "text" || i === 0 ? "text " : "") + (c.width || ""), "aria-sort": "none"},
    element("button", {type: "button", title: c.title, onclick: () => {
      up = sorted === i ? !up : c.kind === "text";
      sorted = i;
      at = 0;
      arrange();
    }}, c.name)));
  const rows = element("tbody");
  host.append(
    element("div", {class: "controls", role: "search"}, element("label", {for: input.id}, "Search " + o.noun), input, back, next, status),
    element("table", {class: o.short ? "big short" : "big"}, element("caption", {}, o.caption), element("thead", {}, element("tr", {}, ...heads)), rows));

  function matches(i) {
    searched[i] ??= (o.columns.map(c => c.text(o.rows[i])).join(" ") + " " + (o.also ? o.also(o.rows[i]) : "")).toLowerCase();
    return words.every(w => searched[i].includes(w));
  }
  function arrange() {
    order = words.length ? first_order.filter(matches) : first_order.slice();
    heads.forEach((h, i) => h.setAttribute("aria-sort", sorted !== i ? "none" : up ? "ascending" : "descending"));
    if (sorted !== null) {
      const value = o.columns[sorted].value;
      const keys = o.rows.map(value);
      const compare = (a, b) => typeof a === "string" ? a.localeCompare(b) : (a ?? -Infinity) - (b ?? -Infinity);
      order.sort((a, b) => (up ? 1 : -1) * compare(keys[a], keys[b]) || a - b);
    }
    show();
  }
  function show() {
    at = Math.max(0, Math.min(at, Math.floor((order.length - 1) / page_size) * page_size));
    const end = Math.min(order.length, at + page_size);
    back.disabled = at === 0, next.disabled = end === order.length;
    status.textContent = order.length ? `${count(at + 1)} to ${count(end)} of ${count(order.length)} ${o.noun}` : `no ${o.noun}`;
    rows.replaceChildren();
    for (const i of order.slice(at, end)) {
      const row = o.rows[i], id = unique("row");
      const button = element("button", {type: "button", class: "open", "aria-expanded": "false", "aria-controls": id, onclick: () => toggle(true)},
        element("span", {title: o.columns[0].text(row)}, o.columns[0].text(row)));
      const detail = element("tr", {class: "detail", id, hidden: true}, element("td", {colspan: o.columns.length}));
      const toggle = change => {
        if (change) opened.has(i) ? opened.delete(i) : opened.add(i);
        button.setAttribute("aria-expanded", String(opened.has(i)));
        detail.hidden = !opened.has(i);
        const cell = detail.firstChild;
        if (opened.has(i) && !cell.firstChild) o.detail(row, cell);
      };
      rows.append(element("tr", {}, ...o.columns.map((c, k) => k === 0 ? element("th", {scope: "row", class: "text"}, button)
        : element("td", {class: (c.kind || "number") + " " + (c.width || "")}, c.text(row)))), detail);
      toggle(false);
    }
  }
  arrange();
  return {open(i) {
    input.value = "", words = [], sorted = null;
    opened.add(i);
    at = Math.floor(i / page_size) * page_size;
    arrange();
    const button = rows.querySelectorAll(".open")[i - at];
    button.focus();
    button.scrollIntoView({block: "center"});
  }};
}

function facts(pairs) {
  return element("dl", {class: "facts"}, ...pairs.map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, text))));
}

// ---- scales and axes

// The dark scale is cividis. Both scales are monotonic in lightness, so they need no distinction of hues.
const ramps = {
  light: ["#dbe8f3", "#aac8e4", "#6fa3cf", "#3d7ab5", "#1d5490", "#0d3263", "#071a38"],
  dark: ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"],
};
const ramp = () => ramps[dark.matches ? "dark" : "light"];
function colour_table() {
  const stops = ramp(), scale = d3.scaleLinear().domain(stops.map((_, i) => i / (stops.length - 1))).range(stops);
  return Array.from({length: 256}, (_, i) => scale(i / 255).match(/\d+/g).map(Number));
}
/// Ticks of a logarithmic axis: powers of ten, or 1, 2 and 5 times these where there are few.
function log_ticks(scale, room) {
  const lead = v => Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9));
  const all = scale.ticks(20), tens = all.filter(v => lead(v) === 1), fine = all.filter(v => [1, 2, 5].includes(lead(v)));
  const from = tens.length < 3 && fine.length <= room ? fine : tens.length ? tens : fine, step = Math.ceil(from.length / Math.max(2, room));
  return from.filter((_, i) => i % step === 0);
}
function chart(host, label, height) {
  const width = Math.max(200, host.clientWidth);
  const svg = d3.select(host).append("svg").attr("width", width).attr("height", height).attr("role", "img").attr("aria-label", label);
  return {svg, width, height};
}
function axes(svg, x, y, o) {
  svg.append("g").attr("transform", `translate(0,${o.bottom})`).call(x);
  svg.append("g").attr("transform", `translate(${o.left},0)`).call(y);
  svg.append("text").attr("class", "label").attr("x", (o.left + o.right) / 2).attr("y", o.bottom + 34).attr("text-anchor", "middle").text(o.x);
  svg.append("text").attr("class", "label").attr("x", 0).attr("y", o.top - 8).text(o.y);
  svg.selectAll("text").attr("font-size", null).attr("font-family", null);
}

/// Whole numbers from 0 to `end`, exclusive: every one if a label takes no more than its `room` pixels, else 2, 5, 10 or more apart.
function whole_ticks(end, pixels, room) {
  const least = end * room / Math.max(1, pixels);
  let step = 1;
  for (let k = 0; step < least; ++k) step = [1, 2, 5][k % 3] * 10 ** Math.floor(k / 3);
  return d3.range(0, end, step);
}
/// An axis of ranks: `wide` ranks per column.
function rank_axis(range, columns, wide) {
  const x = d3.scaleLinear().domain([-0.5 * wide, (columns - 0.5) * wide]).range(range);
  return d3.axisBottom(x).tickValues(whole_ticks(heat.ranks, range[1] - range[0], 12 + 7 * count(heat.ranks - 1).length)).tickFormat(count);
}
/// The key of a plot: [colour, text, title] per area.
function area_key(areas) {
  return element("ul", {class: "key"}, ...areas.map(([colour, text, title]) => {
    const item = element("li", {title});
    d3.select(item).append("svg").attr("width", 16).attr("height", 12).attr("aria-hidden", "true").append("rect").attr("width", 16).attr("height", 12).attr("fill", colour);
    item.append(text);
    return item;
  }));
}
/// Shows the two outlines of a cursor around a box.
function place_cursor(host, x, y, width, height) {
  for (const rect of host.querySelectorAll("rect.cursor")) {
    rect.setAttribute("visibility", "visible");
    rect.setAttribute("x", x - 1), rect.setAttribute("y", y - 1), rect.setAttribute("width", Math.max(3, width + 2)), rect.setAttribute("height", Math.max(3, height + 2));
  }
}
const add_cursor = svg => { for (const kind of ["cursor under", "cursor"]) svg.append("rect").attr("class", kind).attr("visibility", "hidden"); };
/// The position that a key moves to, or undefined. `moves`: by the name of the key.
function moved(event, moves) {
  const to = event.ctrlKey || event.altKey || event.metaKey ? undefined : moves[event.key];
  if (to !== undefined) event.preventDefault();
  return to;
}

/// Counts by time on a logarithmic axis. Adds the chart to `host`, and its drawing to `later`: the width of a chart depends on
/// how many stand beside it.
function histogram(host, later, title, h, noun) {
  const box = element("div", {class: "chart"});
  const sum = h.counts.reduce((a, b) => a + b, 0);
  const figures = `mean ${time(h.mean)}, median ${time(h.median[0])} to ${time(h.median[1])}, 90% below ${time(h.most)}, maximum ${time(h.max)}`;
  host.append(element("div", {}, element("h4", {}, title), element("p", {class: "note"}, sum ? figures : "no values"), box));
  if (!plots || !sum) return;
  later.push(() => draw_always(box, () => {
    box.replaceChildren();
    const {svg, width, height} = chart(box, `Histogram, ${title}: ${count(sum)} ${noun}, ${figures}`, 190);
    const o = {left: 48, right: width - 16, top: 26, bottom: height - 42, x: "time, logarithmic", y: noun};
    const edges = h.edges.slice();
    edges[0] = Math.max(edges[0], edges[1] / 4, 1e-9);
    const x = d3.scaleLog().domain([edges[0], edges[edges.length - 1]]).range([o.left, o.right]);
    const y = d3.scaleLinear().domain([0, d3.max(h.counts)]).nice(4).range([o.bottom, o.top]);
    svg.selectAll(".bar").data(h.counts).enter().append("rect").attr("class", "bar")
      .attr("x", (_, i) => x(edges[i]) + 0.5).attr("width", (_, i) => Math.max(1, x(edges[i + 1]) - x(edges[i]) - 1))
      .attr("y", d => y(d)).attr("height", d => o.bottom - y(d))
      .append("title").text((d, i) => `${time(h.edges[i])} to ${time(h.edges[i + 1])}: ${count(d)} ${noun}`);
    axes(svg, d3.axisBottom(x).tickValues(log_ticks(x, (o.right - o.left) / 75)).tickFormat(tick_time),
         d3.axisLeft(y).ticks(4).tickFormat(v => Number.isInteger(v) ? d3.format(y.domain()[1] >= 10000 ? "~s" : ",")(v) : ""), o);
  }));
}

/// The mean offset of the ranks at a site: one bar per column of the heat map. `later`: as for histogram().
function rank_bars(host, later, values, name) {
  const box = element("div", {class: "chart"});
  const heat = data.heat;
  host.append(element("div", {}, element("h4", {}, "Mean offset from the first arrival, by rank"),
    element("p", {class: "note"}, heat.ranks_per_column > 1 ? `a bar is the largest of ${heat.ranks_per_column} neighbouring ranks` : "one bar per rank"), box));
  if (!plots) return;
  later.push(() => draw_always(box, () => {
    box.replaceChildren();
    const known = Array.from(values).map(v => v || 0);
    const most = d3.max(known), latest = known.indexOf(most);
    const {svg, width, height} = chart(box, `Mean offset by rank at ${name}: the latest is rank ${column_name(latest)} with ${time(most)}`, 190);
    const o = {left: 58, right: width - 26, top: 26, bottom: height - 42, x: "rank", y: "mean offset"};
    const y = d3.scaleLinear().domain([0, most || 1]).range([o.bottom, o.top]);
    const wide = (o.right - o.left) / heat.columns, gap = wide > 4 ? 1 : 0;
    svg.append("path").attr("class", "bar").attr("d", known.map((v, i) =>
      `M${o.left + i * wide + gap / 2},${o.bottom}V${y(v)}h${Math.max(0.5, wide - gap)}V${o.bottom}Z`).join(""));
    axes(svg, rank_axis([o.left, o.right], heat.columns, heat.ranks_per_column),
         d3.axisLeft(y).ticks(4).tickFormat(tick_time), o);
  }));
}

// ---- heat maps

/// o: label, caption, rows (names), column_name(i), corner {x, y: labels}, layers [[key, text, values, format]], open(row),
/// left: pixels for the names, row_ticks: whether a row has a name beside it, x_axis(range): a D3 axis, cuts: numbers of
/// rows to choose from.
function heat_map(host, o) {
  let layer = o.layers[0], logarithmic = true, rows = o.cuts ? Math.min(o.rows.length, o.cuts[0]) : o.rows.length, cursor = null;
  const columns = o.columns;
  const canvas = element("canvas", {role: "img"});
  const plot = element("div", {class: "plot", tabindex: "0", role: "group", "aria-roledescription": "heat map"}, canvas);
  const readout = element("output", {id: unique("readout"), "aria-live": "polite"});
  plot.setAttribute("aria-describedby", readout.id);
  const scale = element("span", {class: "note"});
  const largest = element("div");
  const controls = element("div", {class: "controls"});
  if (o.layers.length > 1)
    controls.append(choice("Colour:", o.layers.map(l => [l[0], l[1]]), layer[0], key => { layer = o.layers.find(l => l[0] === key); draw(); }));
  controls.append(choice("Scale:", [["log", "logarithmic"], ["linear", "linear"]], "log", v => { logarithmic = v === "log"; draw(); }));
  if (o.cuts && o.rows.length > o.cuts[0])
    controls.append(selection("Rows:", [...o.cuts.filter(c => c < o.rows.length).map(c => [c, `the first ${count(c)}`]), [o.rows.length, `all ${count(o.rows.length)}`]],
      value => { rows = Number(value), cursor = null; draw(); }));
  host.append(element("figure", {}, element("figcaption", {}, o.caption), controls, scale, plot, readout,
    element("details", {ontoggle: event => { if (event.target.open) list(); }}, element("summary", {}, "The largest values as a table"), largest)));

  let geometry = null;
  const value = (r, c) => layer[2][r * columns + c];
  const words = (r, c) => {
    const v = value(r, c);
    return `${o.corner.x} ${o.column_name(c)}, ${o.corner.y} ${o.rows[r]}: ` + (Number.isNaN(v) ? "no value" : layer[3](v) + ", " + layer[1]);
  };
  function top_cells() {
    const best = [];
    for (let r = 0; r < rows; ++r)
      for (let c = 0; c < columns; ++c) {
        const v = value(r, c);
        if (v > 0 && (best.length < 10 || v > best[9][0])) {
          best.push([v, r, c]);
          best.sort((a, b) => b[0] - a[0]);
          best.length = Math.min(best.length, 10);
        }
      }
    return best;
  }
  function list() {
    largest.replaceChildren(small_table(`The ten largest values: ${layer[1]}`, [o.corner.y, o.corner.x, layer[1]],
      top_cells().map(([v, r, c]) => [o.rows[r], o.column_name(c), layer[3](v)])));
  }
  function draw() {
    const width = host.clientWidth, dense = rows > 40;
    const row_height = Math.max(1, Math.min(22, Math.floor((dense ? 560 : 720) / rows)));
    const named = o.row_ticks && row_height >= 13;
    const left = named ? Math.min(o.left, Math.round(width * (width < 800 ? 0.42 : 0.3))) : 64, top = 20, right = 26;
    const plot_width = width - left - right, plot_height = rows * row_height;
    geometry = {left, top, plot_width, plot_height};
    let low = Infinity, high = 0;
    for (let i = 0; i < rows * columns; ++i) {
      const v = layer[2][i];
      if (v > 0) low = Math.min(low, v), high = Math.max(high, v);
    }
    low = logarithmic ? Math.min(high, Math.max(low, high / 1e4)) : 0;
    // Several cells in one pixel: the largest.
    const density = window.devicePixelRatio || 1;
    const cw = Math.max(1, Math.min(columns, Math.floor(plot_width * density))), ch = Math.max(1, Math.min(rows, Math.floor(plot_height * density)));
    const cells = new Float64Array(cw * ch).fill(NaN);
    for (let r = 0; r < rows; ++r)
      for (let c = 0; c < columns; ++c) {
        const v = layer[2][r * columns + c], i = Math.floor(r * ch / rows) * cw + Math.floor(c * cw / columns);
        if (!(cells[i] >= v) && !Number.isNaN(v)) cells[i] = v;
      }
    canvas.width = cw, canvas.height = ch;
    canvas.style.cssText = `left:${left}px;top:${top}px;width:${plot_width}px;height:${plot_height}px;image-rendering:pixelated;outline:1px solid var(--line)`;
    const context = canvas.getContext("2d"), image = context.createImageData(cw, ch), table = colour_table();
    const place = v => high === 0 ? 0 : !logarithmic ? v / high : high === low ? Number(v > 0) : v <= low ? 0 : Math.log(v / low) / Math.log(high / low);
    for (let i = 0; i < cells.length; ++i) {
      if (Number.isNaN(cells[i])) continue;
      image.data.set(table[Math.max(0, Math.min(255, Math.round(255 * place(cells[i]))))], 4 * i);
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    const best = top_cells()[0];
    canvas.setAttribute("aria-label", `${o.label}, ${layer[1]}: ${count(rows)} rows, ${count(columns)} columns. ` +
      (best ? `Largest: ${words(best[1], best[2])}.` : "All values are zero.") + " The table below the heat map lists the largest values.");
    plot.setAttribute("aria-label", `${o.label}. Arrow keys move to a cell.` + (o.open ? " Enter opens the details of its site." : ""));
    const bar = element("span", {class: "scale"});
    bar.style.cssText = `width:9rem;height:.9rem;margin:0 .5rem;border:1px solid var(--line);background:linear-gradient(90deg,${ramp().join(",")})`;
    scale.replaceChildren(high > 0 ? (logarithmic ? layer[3](low) + " or less" : "0") : "all zero", bar, high > 0 ? layer[3](high) + " (blank: no value)" : "");
    plot.querySelector("svg")?.remove();
    const height = top + plot_height + 48;
    plot.style.height = height + "px";
    const svg = d3.select(plot).append("svg").attr("aria-hidden", "true").attr("width", width).attr("height", height)
      .style("position", "relative");
    const fit = name => { const most = Math.floor((left - 14) / 6.8); return name.length > most ? name.slice(0, most - 1) + "…" : name; };
    if (named)
      svg.selectAll(".name").data(o.rows.slice(0, rows)).enter().append("text").attr("class", "name").attr("x", left - 8).attr("text-anchor", "end")
        .attr("y", (_, i) => top + (i + 0.5) * row_height).attr("dy", "0.35em").text(fit);
    else {
      const y = d3.scaleLinear().domain([0, rows]).range([top, top + plot_height]);
      const ticks = whole_ticks(rows, plot_height, 18);
      const axis = d3.axisLeft(y).tickValues(ticks.map(i => i + 0.5)).tickFormat(v => o.row_ticks ? count(Math.floor(v) + 1) : o.rows[Math.floor(v)].split("-")[0]).tickSize(4);
      svg.append("g").attr("transform", `translate(${left},0)`).call(axis).select(".domain").remove();
    }
    svg.append("g").attr("transform", `translate(0,${top + plot_height})`).call(o.x_axis([left, left + plot_width]));
    svg.append("text").attr("class", "label").attr("x", left + plot_width / 2).attr("y", top + plot_height + 40).attr("text-anchor", "middle").text(o.x_label);
    svg.append("text").attr("class", "label").attr("x", 0).attr("y", 12).text(o.y_label);
    add_cursor(svg);
    svg.selectAll("text").attr("font-size", null).attr("font-family", null);
    mark();
    if (largest.parentNode.open) list();
  }
  function mark() {
    if (!cursor) { readout.textContent = "Point at a cell, or focus the heat map and use the arrow keys."; return; }
    const [r, c] = cursor, w = geometry.plot_width / columns, h = geometry.plot_height / rows;
    place_cursor(plot, geometry.left + c * w, geometry.top + r * h, w, h);
    readout.textContent = words(r, c);
  }
  plot.addEventListener("pointermove", event => {
    const box = plot.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - geometry.left) / geometry.plot_width * columns), r = Math.floor((event.clientY - box.top - geometry.top) / geometry.plot_height * rows);
    if (c >= 0 && c < columns && r >= 0 && r < rows) cursor = [r, c], mark();
  });
  plot.addEventListener("keydown", event => {
    const [r, c] = cursor || [0, 0], far = event.shiftKey ? 10 : 1;
    const to = {ArrowLeft: [r, c - far], ArrowRight: [r, c + far], ArrowUp: [r - far, c], ArrowDown: [r + far, c], Home: [r, 0], End: [r, columns - 1],
                PageUp: [r - 25, c], PageDown: [r + 25, c]}[event.key];
    if (event.key === "Enter" && o.open && cursor) event.preventDefault(), o.open(cursor[0]);
    if (!to || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    cursor = cursor ? [Math.max(0, Math.min(rows - 1, to[0])), Math.max(0, Math.min(columns - 1, to[1]))] : [0, 0];
    mark();
  });
  if (o.open) plot.addEventListener("dblclick", () => { if (cursor) o.open(cursor[0]); });
  draw_always(host, draw);
}

// ---- the parts of the page

const sites = data.sites, heat = data.heat;
const site_name = s => `${s.op}, ${s.frames[0]}`;
function column_name(c) {
  const first = c * heat.ranks_per_column, last = Math.min(heat.ranks, first + heat.ranks_per_column) - 1;
  return first === last ? String(first) : `${first}-${last}`;
}
const layers = [["offset", "mean offset from the first arrival", unpack(heat.offset), time], ["waited", "time waited", unpack(heat.waited), time],
                ["awaited", "time awaited", unpack(heat.awaited), time], ["last", "times last", unpack(heat.last), v => count(Math.round(v))]];
const seen = s => s.seen > 0;
const seen_time = (s, ns) => seen(s) ? time(ns) : "-";

function site_detail(s, cell) {
  cell.append(facts([["Collective", `${s.op} on ${count(s.size)} ranks`], ["Calls", count(s.calls)], ["Bytes, mean", s.bytes === null ? "-" : bytes(s.bytes)],
    ["Wait, sum", seen_time(s, s.waited)], ["Wait, mean", seen_time(s, s.imbalance.mean)], ["After last, mean", seen_time(s, s.after.mean)], ["Comes last", s.last], ["Site", s.id]]));
  if (s.waiting) cell.append(element("p", {}, s.waiting[0].toUpperCase() + s.waiting.slice(1) + "."));
  if (s.function && !s.frames[0].startsWith(s.function + " ")) cell.append(element("p", {}, "Function: ", element("code", {}, s.function)));
  if (s.frames.length > 1) {
    const from = element("ol", {}, ...s.frames.slice(1).map(f => element("li", {}, f)));
    cell.append(element("details", {}, element("summary", {}, `Called by ${s.frames[1]}`), from));
  }
  if (s.rested > 0) cell.append(element("p", {}, `${count(s.rested)} of the calls are in idle epochs, which are not logged: arrivals were balanced and native ran.`));
  if (s.divergent > 0) cell.append(element("p", {}, `${count(s.divergent)} of the calls were reached from different call sites on different ranks.`));
  if (!seen(s)) {
    cell.append(element("p", {}, "No call has records of all ranks."));
    return;
  }
  const charts = element("div", {class: "charts"}), later = [];
  cell.append(charts);
  histogram(charts, later, "First to last arrival", s.imbalance, "calls");
  histogram(charts, later, "Last arrival to last exit", s.after, "calls");
  histogram(charts, later, "Arrival to exit of each rank", s.elapsed, "calls of ranks");
  const row = sites.indexOf(s);
  if (s.latest.length) rank_bars(charts, later, layers[0][2].subarray(row * heat.columns, (row + 1) * heat.columns), site_name(s));
  for (const draw of later) draw();
  const tables = element("div", {class: "tables"});
  cell.append(tables);
  if (s.callers.length) tables.append(small_table("Callers, with their share of the calls and of the waiting", ["caller", "calls", "waits"],
    s.callers.map(([, place, calls, waits]) => place < 0 ? [`${count(calls)} more callers`, "", ""] : [data.places[place], percent(calls), percent(waits)]), i => s.callers[i][0]));
  if (s.latest.length) tables.append(small_table("Ranks with the largest mean offset", ["rank", "mean offset", "standard deviation", "times last", "awaited"],
    s.latest.map(r => [r[0], time(r[1]), time(r[2]), count(r[3]), time(r[4])])));
  if (s.dispatch.length) tables.append(small_table("Algorithms that ran", ["algorithm", "calls", "elapsed, mean", "after last, mean"],
    s.dispatch.map(d => [d[0], count(d[1]), time(d[2]), time(d[3])])));
  const or_none = ns => ns === null ? "-" : time(ns);
  if (s.decisions.length) tables.append(small_table("Decisions", ["decision", "bytes", "calls", "modelled", "measured", "native"],
    s.decisions.map(d => [d[2] + (d[3] ? `, because ${d[3]}` : ""), d[0] < 0 ? "any" : bytes(d[0]), count(d[1]), or_none(d[4]), or_none(d[5]), or_none(d[6])])));
}

let site_table = null;
function show_sites() {
  const host = body("sites");
  if (!sites.length) { host.append(no_sites()); return; }
  site_table = big_table(host, {
    noun: "sites", rows: sites, opened: [0], detail: site_detail, also: s => s.frames.join(" ") + " " + s.function + " " + s.id,
    caption: "One row per call site and size of the communicator. A button in a heading sorts; the button in a row opens its details.",
    columns: [
      {name: "called from", kind: "text", value: s => s.frames[0], text: s => s.frames[0]},
      {name: "collective", kind: "text", value: s => s.op, text: s => s.op},
      {name: "ranks", width: "minor", value: s => s.size, text: s => count(s.size)},
      {name: "calls", width: "middle", title: "Calls of all ranks together count once", value: s => s.calls, text: s => count(s.calls)},
      {name: "bytes", width: "minor", title: "Mean payload of a call", value: s => s.bytes, text: s => s.bytes === null ? "-" : bytes(s.bytes)},
      {name: "wait, sum", title: "Time that ranks waited for others, sum of all ranks", value: s => s.waited, text: s => seen_time(s, s.waited)},
      {name: "share", title: "Share of the time of all ranks", value: s => s.waited, text: s => percent(s.share)},
      {name: "wait, mean", width: "middle", title: "First to last arrival", value: s => s.imbalance.mean, text: s => seen_time(s, s.imbalance.mean)},
      {name: "after last", width: "minor", title: "Last arrival to last exit", value: s => s.after.mean, text: s => seen_time(s, s.after.mean)},
      {name: "comes last", kind: "text", width: "middle", title: "Ranks that arrive last most often, with their share of the calls", value: s => s.last, text: s => s.last},
    ]});
  if (data.sites_alone) host.append(element("p", {class: "note"}, `The table omits ${count(data.sites_alone)} sites on communicators of one rank.`));
  const follow = () => {
    const i = sites.findIndex(s => "#" + s.id === location.hash);
    if (i >= 0) site_table.open(i);
  };
  addEventListener("hashchange", follow);
  follow();
}

function show_map() {
  const host = body("map");
  if (!plots) return say_no_plots(host);
  if (!sites.length) { host.append(no_sites()); return; }
  heat_map(host, {
    label: "Ranks by sites", rows: sites.map(site_name), columns: heat.columns, column_name, layers, left: 330, row_ticks: true, cuts: [25, 100],
    corner: {x: "rank", y: "site"}, x_label: "rank", y_label: "site", open: i => site_table.open(i),
    caption: "One row per site, in the order of the table of sites. " + (heat.ranks_per_column > 1
      ? `A column shows the largest value of ${heat.ranks_per_column} neighbouring ranks.` : "One column per rank."),
    x_axis: range => rank_axis(range, heat.columns, heat.ranks_per_column)});
}

const no_record = () => [element("p", {class: "no-record"}, "The profile holds no record of single calls. Run the program again with ",
  element("code", {}, "latecomer run --record"), ", or with ", element("code", {}, "\"record\": \"arrivals\""), " in its policy.")];
const no_times = () => element("p", {class: "no-times"}, "The profile holds no time of processes. Profiles that ", element("code", {}, "latecomer run"), " writes have it.");
const no_sites = () => element("p", {}, "The profile has no site on more than one rank: latecomer saw no collective of several ranks.");

function record_note(a) {
  if (a.sample)
    return (a.calls_kept < a.calls ? `The record is a sample: ${count(a.calls_kept)} of ${count(a.calls)} calls on MPI_COMM_WORLD, in stretches of ${count(a.sample)}.`
                                   : `The record holds all ${count(a.calls)} calls on MPI_COMM_WORLD.`) + " latecomer run --record keeps calls on other communicators, too.";
  return a.stride > 1 || a.calls_kept < a.calls
    ? `The record keeps ${count(a.calls_kept)} of ${count(a.calls)} calls: one of ${count(a.stride)} windows of ${time(a.window_ns)}.`
    : `The record holds all ${count(a.calls)} calls.`;
}

function show_times() {
  const host = body("times"), a = data.arrivals;
  if (!a) { host.append(...no_record()); return; }
  if (!plots) return say_no_plots(host);
  const t = a.by_time;
  heat_map(host, {
    label: "Ranks by time", rows: t.rows, columns: t.times, left: 64, row_ticks: false, corner: {x: "time", y: "rank"},
    column_name: c => `${time(a.span_ns * c / t.times)} to ${time(a.span_ns * (c + 1) / t.times)}`,
    layers: [["offset", "mean offset from the first arrival", unpack(t.offset), time]], x_label: "time since the first recorded arrival", y_label: "rank",
    caption: `Colour: the mean offset from the first arrival, of the calls in ${time(a.span_ns / t.times)}. ` +
      (t.ranks_per_row > 1 ? `A row shows the largest value of ${t.ranks_per_row} ranks. ` : "One row per rank. ") + record_note(a),
    x_axis: range => d3.axisBottom(d3.scaleLinear().domain([0, a.span_ns]).range(range)).ticks((range[1] - range[0]) / 90).tickFormat(tick_time)});
}

function show_arrivals() {
  const host = body("arrivals"), a = data.arrivals;
  if (!a) { host.append(...no_record()); return; }
  if (!plots) return say_no_plots(host);
  const names = new Map(sites.map(s => [s.id, site_name(s)]));
  let p = a.plots[0], logarithmic = false, cursor = null;
  const note = element("p", {class: "note"}), box = element("div", {class: "chart plot", tabindex: "0", role: "group", "aria-roledescription": "chart"});
  const key = element("ul", {class: "key"}), readout = element("output", {id: unique("readout"), "aria-live": "polite"}), table = element("div");
  box.setAttribute("aria-describedby", readout.id);
  const details = element("details", {ontoggle: () => list()}, element("summary", {}, "Twelve points in time as a table"), table);
  host.append(element("figure", {}, element("figcaption", {}, "Offsets from the first arrival of a call, over time. " + record_note(a)),
    element("div", {class: "controls"},
      selection("Site:", a.plots.map((q, i) => [i, q.site ? names.get(q.site) || q.site : "all sites"]), i => { p = a.plots[i], cursor = null; draw(); }),
      choice("Offset:", [["linear", "linear"], ["log", "logarithmic"]], "linear", v => { logarithmic = v === "log"; draw(); })),
    note, key, box, readout, details));
  if (a.sites > a.plots.length - 1) host.append(element("p", {class: "note"}, `The choice has the ${a.plots.length - 1} of ${a.sites} sites with the longest waits.`));
  const styles = ["", "7 3", "2 3", "9 3 2 3", "4 4"];
  const lines = () => [["last arrival", p.last_ns], ...p.ranks.map(r => [`rank ${r.rank}`, r.offset_ns])];
  const words = i => `${time(p.at_ns[i])}: last arrival ${time(p.last_ns[i])} after the first, by rank ${p.last_rank[i]}; median of the ranks ${time(p.median_ns[i])}` +
    p.ranks.filter(r => r.offset_ns[i] !== null).map(r => `; rank ${r.rank} ${time(r.offset_ns[i])}`).join("");
  function list() {
    if (!details.open) return;
    const n = p.at_ns.length, picks = [...new Set(Array.from({length: Math.min(12, n)}, (_, k) => Math.round(k * (n - 1) / Math.max(1, Math.min(12, n) - 1))))];
    table.replaceChildren(small_table("Offsets from the first arrival", ["time", "last arrival", "last rank", "median"],
      picks.map(i => [time(p.at_ns[i]), time(p.last_ns[i]), String(p.last_rank[i]), time(p.median_ns[i])])));
  }
  let x = null, geometry = null;
  function draw() {
    box.querySelector("svg")?.remove();
    const most = d3.max(p.last_ns) || 1;
    note.textContent = p.each ? `One point per call, ${count(p.calls)} calls.` : `A point is the mean of the calls in ${time(a.span_ns / a.points)}; ${count(p.calls)} calls.`;
    box.setAttribute("aria-label", `Arrivals over time at ${p.site ? names.get(p.site) || p.site : "all sites"}. Left and right arrow keys move to a point in time.`);
    const {svg, width, height} = chart(box, `Arrivals over time: the last rank arrives at most ${time(most)} after the first. The latest ranks are ${p.ranks.map(r => r.rank).join(", ")}.`, 320);
    const o = {left: 66, right: width - 16, top: 28, bottom: height - 44, x: "time since the first recorded arrival", y: "offset from the first arrival"};
    geometry = o;
    x = d3.scaleLinear().domain([0, a.span_ns]).range([o.left, o.right]);
    const positive = d3.min([...p.last_ns, ...p.median_ns].filter(v => v > 0)) || 1;
    const y = logarithmic ? d3.scaleLog().domain([Math.min(positive, most / 10), most]).range([o.bottom, o.top]).clamp(true)
                          : d3.scaleLinear().domain([0, most]).range([o.bottom, o.top]);
    const low = y.domain()[0], at = p.at_ns.map(t => x(t));
    svg.append("path").attr("d", `M${at.map((v, i) => `${v},${y(Math.max(low, p.median_ns[i]))}`).join("L")}L${at.slice().reverse().map(v => `${v},${o.bottom}`).join("L")}Z`)
      .attr("fill", "var(--none)");
    lines().forEach(([, values], k) => {
      let path = "";
      values.forEach((v, i) => { if (v !== null) path += `${path ? "L" : "M"}${at[i].toFixed(1)},${y(Math.max(low, v)).toFixed(1)}`; });
      svg.append("path").attr("class", "line").attr("d", path).attr("stroke", `var(--series${k})`).attr("stroke-dasharray", styles[k]);
    });
    svg.append("line").attr("class", "cursor").attr("y1", o.top).attr("y2", o.bottom).attr("visibility", "hidden");
    axes(svg, d3.axisBottom(x).ticks((o.right - o.left) / 90).tickFormat(tick_time),
         logarithmic ? d3.axisLeft(y).tickValues(log_ticks(y, 8)).tickFormat(tick_time) : d3.axisLeft(y).ticks(6).tickFormat(tick_time), o);
    key.replaceChildren(...lines().map(([name], k) => {
      const item = element("li");
      d3.select(item).append("svg").attr("width", 34).attr("height", 10).attr("aria-hidden", "true").append("path").attr("class", "line").attr("d", "M0,5H34")
        .attr("stroke", `var(--series${k})`).attr("stroke-dasharray", styles[k]);
      item.append(name);
      return item;
    }), (() => {
      const item = element("li");
      d3.select(item).append("svg").attr("width", 34).attr("height", 10).attr("aria-hidden", "true").append("rect").attr("width", 34).attr("height", 10)
        .attr("fill", "var(--none)").attr("stroke", "var(--dim)");
      item.append("area: up to the median of the ranks");
      return item;
    })());
    mark();
    list();
  }
  function mark() {
    const line = box.querySelector("line.cursor");
    if (cursor === null) { readout.textContent = "Point at the chart, or focus it and use the arrow keys."; return; }
    line.setAttribute("visibility", "visible");
    line.setAttribute("x1", x(p.at_ns[cursor])), line.setAttribute("x2", x(p.at_ns[cursor]));
    readout.textContent = words(cursor);
  }
  box.addEventListener("pointermove", event => {
    const where = x.invert(event.clientX - box.getBoundingClientRect().left);
    cursor = 0;
    p.at_ns.forEach((t, i) => { if (Math.abs(t - where) < Math.abs(p.at_ns[cursor] - where)) cursor = i; });
    mark();
  });
  box.addEventListener("keydown", event => {
    const far = event.shiftKey ? 10 : 1, n = p.at_ns.length;
    const to = {ArrowLeft: (cursor ?? 0) - far, ArrowRight: cursor === null ? 0 : cursor + far, Home: 0, End: n - 1}[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    cursor = Math.max(0, Math.min(n - 1, to));
    mark();
  });
  draw_always(host, draw);
}

const main_cause = causes => causes ? `${causes[0][0]} (${percent(causes[0][1])})` : "-";
const part_columns = index => data.tables.columns.map(([name, title], k) => ({name, title, width: k === 0 || name === "in coll." ? "middle" : "minor", value: r => r[index][k], text: r => percent(r[index][k])}));

let rank_table = null, rank_rows = [];
function show_ranks() {
  const host = body("ranks"), t = data.tables;
  const per = t.ranks_per_row, shared = per > t.ranks_per_sum, first = r => Math.floor(r[0] / per) * per;
  const of = r => shared && r[8] ? ` of ${first(r)}-${Math.min(first(r) + per, heat.ranks) - 1}` : "";
  if (!t.ranks.length) { host.append(no_times()); return; }
  const e = t.efficiency;
  if (e)
    host.append(element("p", {}, `Load balance ${e.load_balance.toFixed(2)} (mean over longest time outside MPI), communication efficiency ${e.communication.toFixed(2)} (longest time outside MPI over run time). Estimates: serialisation ${e.serialisation.toFixed(2)}, transfer ${e.transfer.toFixed(2)}; their product is the communication efficiency.`));
  const columns = [
    {name: t.ranks_per_sum > 1 ? "ranks" : "rank", value: r => r[0], text: r => r[1]},
    {name: "host", kind: "text", value: r => r[2], text: r => r[2] || "-"},
    ...(t.measured ? part_columns(3) : []),
    ...(t.measured ? [{name: t.waits[0], title: t.waits[1], value: r => r[4], text: r => percent(r[4])}] : []),
    {name: "awaited", title: "Time that others waited for the rank", value: r => r[5], text: r => time(r[5])},
    {name: "last", title: "Calls in which the rank came last", width: "middle", value: r => r[6], text: r => count(r[6])},
    {name: "lateness", title: "Mean offset, less that of the others", width: "middle", value: r => r[7], text: r => r[7] === null ? "-" : time(r[7])},
    {name: "main cause", kind: "text", title: "The largest part of the lateness", value: r => main_cause(r[8]), text: r => main_cause(r[8]) + of(r)}];
  rank_rows = t.ranks.slice().sort((a, b) => b[5] - a[5] || a[0] - b[0]);
  rank_table = big_table(host, {
    short: true, noun: t.ranks_per_sum > 1 ? "rows of ranks" : "ranks", rows: rank_rows, columns,
    caption: (t.ranks_per_sum > 1 ? `The profile has ${t.ranks_per_sum} ranks per row. ` : shared ? `Causes are of ${per} neighbouring ranks together. ` : "") + "Ranks that others waited for most come first. Percentages are shares of the rank's own time.",
    detail: (r, cell) => {
      cell.append(facts(columns.slice(1).map(c => [c.name, c.text(r)])));
      if (r[8]) cell.append(small_table("Causes of the lateness" + of(r), ["cause", "share"], r[8].map(e => [e[0], percent(e[1])])));
      else cell.append(element("p", {class: "note"}, "No cause: the rank was not late, or by less than 1% of its time, or too few of its intervals were sampled."));
      const code = data.functions.find(f => f[0] === r[0]);
      if (code) cell.append(small_table(`Functions outside MPI, by ${count(code[1])} samples`, ["function", "share of the computing time"], code[2].map(e => [e[0], percent(e[1] / code[1])])));
    }});
}

function show_hosts() {
  const host = body("hosts"), t = data.tables;
  if (!t.hosts.length) { host.append(no_times()); return; }
  const columns = [{name: "host", kind: "text", value: r => r[0], text: r => r[0]}, {name: "ranks", value: r => r[1], text: r => count(r[1])},
    ...(t.measured ? part_columns(2) : []),
    ...(t.measured ? [{name: t.waits[0], title: t.waits[1], value: r => r[3], text: r => percent(r[3])}] : []),
    {name: "awaited", title: "Time that others waited for its ranks", value: r => r[4], text: r => time(r[4])},
    {name: "last", title: "Calls in which one of its ranks came last", width: "middle", value: r => r[5], text: r => count(r[5])}];
  big_table(host, {noun: "hosts", rows: t.hosts.slice().sort((a, b) => b[4] - a[4] || (a[0] < b[0] ? -1 : 1)), columns,
    caption: "Hosts whose ranks were awaited most come first. Percentages are shares of the time of their ranks.",
    detail: (r, cell) => cell.append(facts(columns.slice(1).map(c => [c.name, c.text(r)])))});
}

const part_colour = k => `var(--part${k})`;
const WAITS = data.parts.length - 3, AFTER = WAITS + 1;  // as page_data.cpp orders them
const part_key = k => [part_colour(k), ...data.parts[k]];

function show_time() {
  const host = body("time"), t = data.time;
  if (!t) { host.append(no_times()); return; }
  if (!plots) return say_no_plots(host);
  const wide = t.ranks_per_bar, binned = wide > t.ranks_per_row, bars = t.bars;
  let mean = false, cursor = null, geometry = null;
  const shares = bar => bar[mean ? 3 : 2];
  const box = element("div", {class: "chart plot", tabindex: "0", role: "group", "aria-roledescription": "stacked bars",
    "aria-label": "Parts of the run time by rank. Left and right arrow keys move to a bar. Enter opens its row in the table of ranks."});
  const readout = element("output", {id: unique("readout"), "aria-live": "polite"}), table = element("div");
  box.setAttribute("aria-describedby", readout.id);
  const details = element("details", {ontoggle: () => list()}, element("summary", {}, "The ten bars with the shortest waits as a table"), table);
  const caption = element("figcaption"), controls = element("div", {class: "controls"});
  if (binned) controls.append(choice("A bar shows:", [["longest", t.ranks_per_row > 1 ? "the row of ranks that others waited for longest" : "the rank that others waited for longest"], ["mean", "the mean of its ranks"]], "longest",
    v => { mean = v === "mean"; draw(); }));
  host.append(element("figure", {}, caption, controls, area_key(data.parts.map((_, k) => part_key(k))), box, readout, details));
  const range_of = i => wide === 1 ? `rank ${count(i)}` : `ranks ${count(i * wide)} to ${count(Math.min(heat.ranks, (i + 1) * wide) - 1)}`;
  const name_of = i => !bars[i] ? range_of(i) : binned && !mean ? `${range_of(i)}, of which ${bars[i][0]}` : range_of(i);
  const words = i => !bars[i] ? `${range_of(i)}: no data` : `${name_of(i)}${bars[i][1] ? " on " + bars[i][1] : ""}: ` + data.parts.map(([name], k) => `${name} ${percent(shares(bars[i])[k])}`).join(", ");
  function list() {
    if (!details.open) return;
    const order = bars.map((_, i) => i).filter(i => bars[i]).sort((a, b) => shares(bars[a])[WAITS] - shares(bars[b])[WAITS] || a - b).slice(0, 10);
    const largest = bar => { const k = shares(bar).slice(0, WAITS).reduce((a, v, i, all) => v > all[a] ? i : a, 0); return `${data.parts[k][0]} ${percent(shares(bar)[k])}`; };
    table.replaceChildren(small_table("Shares of the run time", ["rank", data.parts[WAITS][0], data.parts[AFTER][0], "largest part outside collectives"],
      order.map(i => [name_of(i), percent(shares(bars[i])[WAITS]), percent(shares(bars[i])[AFTER]), largest(bars[i])])));
  }
  function draw() {
    box.querySelector("svg")?.remove();
    caption.textContent = "One bar per " + (!binned ? t.ranks_per_row > 1 ? `row of ${t.ranks_per_row} ranks of the profile: their mean.` : "rank."
      : `${count(wide)} neighbouring ranks: ` + (mean ? "their mean." : t.ranks_per_row > 1 ? `the mean of those ${t.ranks_per_row} that others waited for longest.` : "that which others waited for longest.")) +
      " A whole bar is the run time of the rank. A late rank waits less than the others.";
    const known = bars.map((_, i) => i).filter(i => bars[i]), least = known.reduce((a, i) => shares(bars[i])[WAITS] < shares(bars[a])[WAITS] ? i : a, known[0]);
    const {svg, width, height} = chart(box, `Parts of the run time by rank, ${count(bars.length)} bars. The shortest waits: ${words(least)}.`, 348);
    const o = {left: 56, right: Math.min(width - 26, 56 + 90 * bars.length), top: 34, bottom: height - 42, x: "rank", y: "share of the run time"};
    const y = d3.scaleLinear().domain([0, 1]).range([o.bottom, o.top]).clamp(true), size = (o.right - o.left) / bars.length;
    const gap = size >= 24 ? size * 0.25 : size >= 6 ? 1 : 0;
    const from = i => Math.round(o.left + i * size + gap / 2), to = i => Math.max(from(i) + 1, Math.round(o.left + (i + 1) * size - gap / 2));
    geometry = {o, size, from, to};
    const low = new Float64Array(bars.length);
    data.parts.forEach((_, k) => {
      let path = "";
      bars.forEach((bar, i) => {
        if (!bar || shares(bar)[k] === 0) return;
        path += `M${from(i)},${y(low[i]).toFixed(1)}V${y(low[i] += shares(bar)[k]).toFixed(1)}H${to(i)}V${y(low[i] - shares(bar)[k]).toFixed(1)}Z`;
      });
      svg.append("path").attr("class", "part").attr("fill", part_colour(k)).attr("d", path);
    });
    add_cursor(svg);
    axes(svg, rank_axis([o.left, o.right], bars.length, wide), d3.axisLeft(y).ticks(5).tickFormat(v => Math.round(100 * v) + "%"), o);
    mark();
    list();
  }
  function mark() {
    if (cursor === null) { readout.textContent = "Point at a bar, or focus the chart and use the arrow keys."; return; }
    place_cursor(box, geometry.from(cursor), geometry.o.top, geometry.to(cursor) - geometry.from(cursor), geometry.o.bottom - geometry.o.top);
    readout.textContent = words(cursor);
  }
  const open = () => {
    const first = bars[cursor] && Number(bars[cursor][0].split("-")[0]), at = rank_rows.findIndex(r => r[0] === first);
    if (at >= 0) rank_table.open(at);
  };
  box.addEventListener("pointermove", event => {
    const at = Math.floor((event.clientX - box.getBoundingClientRect().left - geometry.o.left) / geometry.size);
    if (at >= 0 && at < bars.length) cursor = at, mark();
  });
  box.addEventListener("dblclick", () => { if (cursor !== null) open(); });
  box.addEventListener("keydown", event => {
    const far = event.shiftKey ? 10 : 1, n = bars.length;
    if (event.key === "Enter" && cursor !== null) event.preventDefault(), open();
    const to = moved(event, {ArrowLeft: (cursor ?? 0) - far, ArrowRight: cursor === null ? 0 : cursor + far, Home: 0, End: n - 1});
    if (to !== undefined) cursor = Math.max(0, Math.min(n - 1, to)), mark();
  });
  draw_always(host, draw);
}

/// Ranks as rows, recorded calls as bars.
function show_calls() {
  const host = body("calls"), a = data.arrivals;
  if (!a) { host.append(...no_record()); return; }
  if (!a.stretches.length) { host.append(element("p", {}, "No rank waited in a recorded call.")); return; }
  if (!plots) return say_no_plots(host);
  const numbers = new Map(sites.map((s, i) => [s.id, i])), site_of = id => numbers.has(id) ? site_name(sites[numbers.get(id)]) : `site ${id}`;
  let s = a.stretches[0], cursor = null, rows = [], x = null, geometry = null;
  const box = element("div", {class: "chart plot", tabindex: "0", role: "group", "aria-roledescription": "Gantt chart"});
  const readout = element("output", {id: unique("readout"), "aria-live": "polite"}), table = element("div"), note = element("p", {class: "note"});
  box.setAttribute("aria-describedby", readout.id);
  const details = element("details", {ontoggle: () => list()}, element("summary", {}, "The calls of the stretch as a table"), table);
  host.append(element("figure", {}, element("figcaption", {}, "Short stretches around the recorded calls with the longest waits. A row is a rank, a bar is a call. " + record_note(a)),
    element("div", {class: "controls"}, selection("Stretch:", a.stretches.map((q, i) => [i, `${time(q.waited_ns)} of waits in the ${site_of(q.site)}`]), i => { s = a.stretches[i], cursor = null; draw(); })),
    note, area_key([["var(--none)", "outside the recorded calls"], part_key(WAITS), part_key(AFTER),
      ...(a.stretches.some(q => q.bars.some(b => b[4] === null)) ? [["var(--ink)", "line: a call whose exit is not known, or that overlaps another", ""]] : [])]), box, readout, details));
  const words = ([row, call, arrival, wait_end, exit, awaited]) => `rank ${s.rows[row]}, ${site_of(s.calls[call][0])}: arrives at ${time(arrival)}` +
    (exit === null ? "; its exit is not known, or the call overlaps another" : (awaited >= 0 ? `, ${data.parts[WAITS][0]} ${time(wait_end - arrival)} for rank ${awaited}` : `, ${data.parts[WAITS][0]} 0 ns`) + `, ${data.parts[AFTER][0]} ${time(exit - wait_end)}`);
  function list() {
    if (!details.open) return;
    const most = s.calls.slice().sort((p, q) => q[2] - p[2]).slice(0, 25).sort((p, q) => p[1] - q[1]);
    table.replaceChildren(small_table(most.length < s.calls.length ? `The 25 calls with the longest waits of ${count(s.calls.length)}` : "Calls", ["call", "first arrival", "wait, sum", "last rank"],
      most.map(c => [site_of(c[0]), time(c[1]), time(c[2]), String(c[3])])));
  }
  function draw() {
    box.querySelector("svg")?.remove();
    rows = s.rows.map(() => []);
    for (const bar of s.bars) rows[bar[0]].push(bar);
    note.textContent = `${time(s.span_ns)}, from ${time(s.begin_ns)} after the first recorded arrival on; ${count(s.calls.length)} calls` +
      (s.rows.length < s.members ? `; ${count(s.rows.length)} of ${count(s.members)} ranks: those that others waited for longest, and others evenly spread.` : `; all ${count(s.members)} ranks of the call with the longest waits.`);
    const high = Math.max(13, Math.min(26, Math.floor(560 / s.rows.length))), longest = s.bars.reduce((p, q) => (q[3] ?? q[2]) - q[2] > (p[3] ?? p[2]) - p[2] ? q : p, s.bars[0]);
    box.setAttribute("aria-label", "Recorded calls. Arrow keys move to a call or a rank. Enter opens the details of its site.");
    const {svg, width, height} = chart(box, `Recorded calls of ${count(s.rows.length)} ranks in ${time(s.span_ns)}. The longest wait: ${words(longest)}.`, 26 + high * s.rows.length + 46);
    const o = {left: 64, right: width - 26, top: 26, bottom: height - 46, x: "time in the stretch", y: "rank"};
    x = d3.scaleLinear().domain([0, s.span_ns]).range([o.left, o.right]).clamp(true);
    const top = r => o.top + r * high + 1, size = high - 2;
    geometry = {o, high, top, size};
    svg.append("path").attr("fill", "var(--none)").attr("d", rows.map((_, r) => `M${o.left},${top(r)}H${o.right}v${size}H${o.left}Z`).join(""));
    // A short part is one pixel wide, so that it shows.
    const box_of = (r, from, to) => { const p = x(from); return `M${p.toFixed(1)},${top(r)}H${Math.max(p + 1, x(to)).toFixed(1)}v${size}H${p.toFixed(1)}Z`; };
    const inside = s.bars.filter(b => b[4] !== null);
    svg.append("path").attr("class", "after").attr("fill", part_colour(AFTER)).attr("d", inside.filter(b => b[4] > b[3]).map(b => box_of(b[0], b[3], b[4])).join(""));
    svg.append("path").attr("class", "waits").attr("fill", part_colour(WAITS)).attr("d", inside.filter(b => b[3] > b[2]).map(b => box_of(b[0], b[2], b[3])).join(""));
    svg.append("path").attr("class", "unknown").attr("stroke", "var(--ink)").attr("d", s.bars.filter(b => b[4] === null).map(b => `M${x(b[2]).toFixed(1)},${top(b[0])}v${size}`).join(""));
    add_cursor(svg);
    const y = d3.scaleLinear().domain([0, s.rows.length]).range([o.top, o.bottom]);
    axes(svg, d3.axisBottom(x).ticks((o.right - o.left) / 90).tickFormat(tick_time), d3.axisLeft(y).tickValues(s.rows.map((_, i) => i + 0.5)).tickFormat(v => count(s.rows[Math.floor(v)])).tickSize(4), o);
    mark();
    list();
  }
  function mark() {
    if (!cursor) { readout.textContent = "Point at a bar, or focus the chart and use the arrow keys."; return; }
    const from = x(cursor[2]), to = x(cursor[4] ?? cursor[2]);
    place_cursor(box, from, geometry.top(cursor[0]), to - from, geometry.size);
    readout.textContent = words(cursor);
  }
  /// The call of a row that is nearest to a time.
  const nearest = (row, at) => rows[row].reduce((p, q) => { const far = b => Math.max(b[2] - at, at - (b[4] ?? b[2]), 0); return p && far(p) <= far(q) ? p : q; }, null);
  box.addEventListener("pointermove", event => {
    const place = box.getBoundingClientRect(), row = Math.floor((event.clientY - place.top - geometry.o.top) / geometry.high), at = event.clientX - place.left;
    if (row < 0 || row >= rows.length || !rows[row].length || at < geometry.o.left || at > geometry.o.right) return;
    cursor = nearest(row, x.invert(at));
    mark();
  });
  const open = () => { if (numbers.has(s.calls[cursor[1]][0])) site_table.open(numbers.get(s.calls[cursor[1]][0])); };
  box.addEventListener("dblclick", () => { if (cursor) open(); });
  box.addEventListener("keydown", event => {
    if (event.key === "Enter" && cursor) event.preventDefault(), open();
    const to = moved(event, {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity]});
    if (to === undefined) return;
    if (!cursor) cursor = s.bars[0];
    else if (to[0]) {
      let row = cursor[0] + to[0];
      while (rows[row] && !rows[row].length) row += to[0];
      if (rows[row]) cursor = nearest(row, cursor[2]);
    } else {
      const row = rows[cursor[0]];
      cursor = row[Math.max(0, Math.min(row.length - 1, row.indexOf(cursor) + to[1]))];
    }
    mark();
  });
  draw_always(host, draw);
}

function show_communicators() {
  const host = body("communicators"), t = data.communicators;
  if (!t.rows.length) { host.append(element("p", {class: "no-communicators"}, "The profile names no communicator of several ranks. Profiles that ", element("code", {}, "latecomer run"), " writes name them if all ranks of a call sent their data.")); return; }
  const kinds = [r => r[0] ? count(r[0]) : "-", r => count(r[1]), r => time(r[2]), r => percent(r[3]), r => time(r[4]), r => time(r[5]), r => r[6]];
  const columns = t.titles.map((name, k) => ({name, kind: k === 6 ? "text" : "number", width: ["", "middle", "", "", "middle", "minor", ""][k], value: r => r[k], text: kinds[k],
    title: ["Members of the communicator", "Calls with records of all ranks", "Time that ranks waited for others, sum of all ranks", "Share of the time of all ranks", "First to last arrival, mean of the calls", "Last arrival to last exit, mean of the calls", "Ranks of MPI_COMM_WORLD"][k]}));
  // The members name the row.
  columns.unshift(columns.pop());
  big_table(host, {noun: "communicators", rows: t.rows, columns, detail: (r, cell) => cell.append(facts(columns.map(c => [c.name, c.text(r)]))),
    caption: "Longest wait first. Communicators with the same members count as one." + (t.all > t.rows.length ? ` The table has ${count(t.rows.length)} of ${count(t.all)}.` : "")});
}

function show_timed() {
  const host = body("timed"), t = data.timed;
  if (!t.rows.length) { host.append(element("p", {class: "note"}, "The profile holds no call that may wait and is no collective.")); return; }
  const kinds = [r => r[0], r => count(r[1]), r => r[2] === null ? "-" : bytes(r[2]), r => time(r[3]), r => percent(r[4]), r => r[5], r => r[6], r => r[7], r => r[8]];
  const columns = t.titles.map((name, k) => ({name, kind: k === 0 || k > 4 ? "text" : "number", width: ["", "middle", "middle", "", "", "minor", "middle", "minor", ""][k], value: r => r[k], text: kinds[k],
    title: ["Function of MPI", "Calls", "Data in the messages that the calls sent, or received before they returned", "Time in the calls, sum of all ranks", "Share of the time of all ranks", "The rank with the most of this time, and its share of it", "The rank whose messages the calls awaited longest, with the share of the time; several: most calls waited for several ranks at once", "What most of the time was for, with its share, of so many messages of a sample: those whose times are known on both sides", "Function, file and line"][k]}));
  big_table(host, {noun: "call sites", rows: t.rows, columns, detail: (r, cell) => cell.append(facts(columns.map(c => [c.name, c.text(r)]))), caption: "Longest time first."});
}

function show_pairs() {
  const host = body("pairs"), p = data.pairs;
  if (!p) { host.append(element("p", {class: "note"}, "The profile holds no message between two ranks.")); return; }
  if (!plots) return say_no_plots(host);
  const name = i => p.ranks_per_row === 1 ? `${i}` : `${i * p.ranks_per_row}-${(i + 1) * p.ranks_per_row - 1}`;
  heat_map(host, {
    label: "Pairs of ranks", rows: Array.from({length: p.rows}, (_, i) => name(i)), columns: p.rows, column_name: name, left: 110, row_ticks: false, corner: {x: "peer", y: "rank"},
    layers: [["waited", "time waited for the peer", unpack(p.waited), time], ["bytes", "bytes sent to the peer", unpack(p.bytes), bytes], ["messages", "messages sent to the peer", unpack(p.messages), v => count(Math.round(v))]],
    x_label: "peer", y_label: "rank", caption: "Messages of the threads that started MPI. A wait for several ranks at once counts for each of them. " + (p.ranks_per_row > 1 ? `Rows and columns have ${p.ranks_per_row} ranks.` : ""),
    x_axis: range => rank_axis(range, p.rows, p.ranks_per_row)});
}

function show_parts() {
  document.getElementById("parts").append(element("h3", {}, "Parts of the run time"), element("dl", {class: "definitions"}, ...data.parts.flatMap(([name, meaning]) => [element("dt", {}, name), element("dd", {}, meaning + ".")])));
}

function show_reduction() {
  const notes = [], a = data.arrivals;
  notes.push(heat.ranks_per_column > 1
    ? `The heat map of ranks by sites has ${count(heat.columns)} columns of ${heat.ranks_per_column} ranks. A column shows the largest value of the rows of ranks in it, so a single late rank stays visible.`
    : "The heat map of ranks by sites shows every rank.");
  if (data.time && data.time.ranks_per_bar > data.time.ranks_per_row)
    notes.push(`The bars of the run time stand for ${data.time.ranks_per_bar} ranks each. A bar shows those that others waited for longest, or the mean of all.`);
  if (data.tables.ranks_per_row > 1) notes.push(`The profile adds up ${data.tables.ranks_per_row} neighbouring ranks: a mean offset is the mean of these, and the other values are sums.`);
  notes.push("Values of heat maps have a relative error of up to 0.03%. Other figures have four significant digits.");
  if (a) notes.push(`The heat map of ranks by time has ${count(a.by_time.times)} steps of time and ${count(a.by_time.rows.length)} rows. The plot of arrivals has at most ${a.points} points per line. The recorded calls show the surroundings of up to three calls, on up to 40 ranks.`);
  document.getElementById("reduced").append(element("h3", {}, "How the page reduces the data"), element("ul", {}, ...notes.map(n => element("li", {}, n))));
}

for (const show of [show_time, show_sites, show_map, show_times, show_arrivals, show_calls, show_ranks, show_hosts, show_communicators, show_timed, show_pairs, show_parts, show_reduction]) show();

let waiting = false, width = document.documentElement.clientWidth;
const redraw = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; for (const draw of drawers) draw(); });
};
addEventListener("resize", () => { if (document.documentElement.clientWidth !== width) width = document.documentElement.clientWidth, redraw(); });
dark.addEventListener("change", redraw);
for (const part of document.querySelectorAll("details.part")) part.addEventListener("toggle", redraw);
document.documentElement.dataset.ready = "yes";
})();
