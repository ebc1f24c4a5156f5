(function () {
  'use strict';
  var report = JSON.parse(document.getElementById('report').textContent);
  var nodes = report.nodes || [];
  var root = document.documentElement;

  // Light or dark: the system's choice until the button is used.
  function remember(theme) { try { localStorage.setItem('heddle-theme', theme); } catch (error) { /* private mode */ } }
  try {
    var saved = localStorage.getItem('heddle-theme');
    if (saved) root.dataset.theme = saved;
  } catch (error) { /* private mode */ }
  document.getElementById('theme').addEventListener('click', function () {
    var dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    remember(root.dataset.theme);
  });

  function time(us) {
    if (us === undefined) return '-';
    var size = Math.abs(us), unit = ' us';
    if (size >= 1e6) { us /= 1e6; unit = ' s'; } else if (size >= 1e3) { us /= 1e3; unit = ' ms'; }
    size = Math.abs(us);
    return us.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 || size === 0 ? 2 : 3) + unit;
  }
  function signed(us) { return (us >= 0 ? '+' : '') + time(us); }

  // All text goes in as text: names come from the model and may be hostile.
  function add(parent, tag, text, css) {
    var element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (css) element.className = css;
    parent.appendChild(element);
    return element;
  }
  function pair(list, label, value) {
    var row = add(list, 'div');
    add(row, 'dt', label);
    add(row, 'dd', value);
  }

  var details = document.getElementById('details');
  function describe(node) {
    details.textContent = '';
    var close = add(details, 'button', '\u00d7', 'close');
    close.setAttribute('aria-label', 'Close');
    close.addEventListener('click', function () { choose(-1); });
    add(details, 'h3', node.name);
    var list = add(details, 'dl');
    pair(list, 'op', node.op + (node.fused ? ' with ' + node.fused : ''));
    pair(list, 'runs on', node.device + (node.region ? ', ' + node.region : ''));
    if (node.shape) pair(list, 'result', node.shape);
    pair(list, 'MACs', (node.macs || 0).toLocaleString('en'));
    var costs = node.costs_us || {}, kinds = node.provenance || {};
    if (node.device in costs) pair(list, 'predicted', time(costs[node.device]) + ' ' + (kinds[node.device] || ''));
    if (node.actual_us) pair(list, 'found', time(node.actual_us.value) + ' ' + node.actual_us.provenance);
    if (node.cycles_estimated) pair(list, 'cycles, estimated', node.cycles_estimated.toLocaleString('en'));
    if (node.cycles_simulated) pair(list, 'cycles, simulated', node.cycles_simulated.toLocaleString('en'));
    if (node.why) {
      add(details, 'h4', 'Why here');
      add(details, 'p', node.why);
    }
    var refused = Object.keys(node.not_on || {}), others = node.alternatives || [];
    if (refused.length || others.length) add(details, 'h4', 'Elsewhere');
    others.forEach(function (other) {
      var option = add(details, 'div', undefined, 'option');
      add(option, 'p').appendChild(document.createElement('b')).textContent =
          other.device + ': the plan\'s cost would change by ' +
          (other.delta_uj === undefined ? signed(other.delta_us) : (other.delta_uj >= 0 ? '+' : '') + other.delta_uj.toPrecision(3) + ' uJ');
      add(option, 'p', time(other.cost_us) + ' there ' + (kinds[other.device] || '') + ', transfers ' +
          signed(other.transfer_delta_us) + ', launches ' + signed(other.launch_delta_us));
      (node.flips_if || []).forEach(function (flip) {
        if (flip.device === other.device) add(option, 'p', flip.text);
      });
    });
    refused.forEach(function (device) {
      var option = add(details, 'div', undefined, 'option');
      add(option, 'p').appendChild(document.createElement('b')).textContent = device + ': not possible';
      var reason = node.not_on[device];
      add(option, 'p', (reason.code ? reason.code + ': ' : '') + reason.text);
    });
  }

  function choose(index) {
    document.querySelectorAll('.chosen').forEach(function (e) { e.classList.remove('chosen'); });
    document.querySelectorAll('.edge').forEach(function (e) {
      e.classList.toggle('lit', index >= 0 && (e.dataset.from === String(index) || e.dataset.to === String(index)));
    });
    details.classList.toggle('open', index >= 0);
    if (index < 0) {
      details.textContent = '';
      add(details, 'p', 'No node chosen.', 'quiet');
      return;
    }
    document.querySelectorAll('[data-node="' + index + '"]').forEach(function (e) { e.classList.add('chosen'); });
    describe(nodes[index]);
  }
  function open(event) {
    var target = event.target.closest('[data-node]');
    if (!target) return;
    choose(Number(target.dataset.node));
    if (target.tagName === 'TR') {
      var box = document.querySelector('g[data-node="' + target.dataset.node + '"]');
      if (box && innerWidth > 900) box.scrollIntoView({block: 'center', inline: 'center'});
    }
  }
  document.addEventListener('click', open);
  document.addEventListener('keydown', function (event) {
    if (event.key === 'Enter' || event.key === ' ') {
      if (event.target.closest('[data-node]')) event.preventDefault();
      open(event);
    }
    if (event.key === 'Escape') choose(-1);
  });

  // On a wide window begin with the slowest node rather than an empty panel.
  if (innerWidth > 900 && nodes.length) {
    var cost = function (node) {
      return node.actual_us ? node.actual_us.value : (node.costs_us || {})[node.device] || 0;
    };
    choose(nodes.reduce(function (best, node, index) { return cost(node) > cost(nodes[best]) ? index : best; }, 0));
  }

  // Sorting by a column; numbers by data-v, the rest as text.
  document.querySelectorAll('table.sortable th button').forEach(function (button) {
    button.addEventListener('click', function () {
      var head = button.parentElement, row = head.parentElement, column = Array.from(row.children).indexOf(head);
      var body = row.closest('table').tBodies[0], number = head.classList.contains('num');
      var down = head.getAttribute('aria-sort') ? head.getAttribute('aria-sort') === 'ascending' : number && column > 0;
      Array.from(row.children).forEach(function (th) { th.removeAttribute('aria-sort'); });
      head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      Array.from(body.rows).sort(function (a, b) {
        a = a.cells[column];
        b = b.cells[column];
        var order = number ? Number(a.dataset.v) - Number(b.dataset.v) : a.textContent.localeCompare(b.textContent, 'en', {numeric: true});
        return down ? -order : order;
      }).forEach(function (line) { body.appendChild(line); });
    });
  });

  var filter = document.getElementById('filter');
  filter.addEventListener('input', function () {
    var words = filter.value.toLowerCase().split(/\s+/);
    Array.from(document.getElementById('layers').tBodies[0].rows).forEach(function (line) {
      var text = line.textContent.toLowerCase();
      line.hidden = !words.every(function (word) { return text.indexOf(word) >= 0; });
    });
  });

  // Tooltips follow the pointer and stay inside the window.
  var tip = document.getElementById('tip');
  document.addEventListener('pointermove', function (event) {
    var target = event.target.closest && event.target.closest('[data-tip]');
    tip.hidden = !target || event.pointerType === 'touch';
    if (tip.hidden) return;
    tip.textContent = target.dataset.tip;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
    tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18) + 'px';
  });
  document.addEventListener('pointerleave', function () { tip.hidden = true; });
}());
