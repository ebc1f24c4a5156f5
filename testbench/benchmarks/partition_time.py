#!/usr/bin/env python3
"""Draws what partition_time prints: python3 partition_time.py TIMES.csv PLOT.svg (standard library only)."""
import csv
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 70, 150, 30, 50
COLOURS = {"latency": "#3b6fd4", "throughput": "#c2571a", "energy": "#2a8a4a"}


def main():
    with open(sys.argv[1], newline="") as file:
        rows = list(csv.DictReader(file))
    nodes = [int(row["nodes"]) for row in rows]
    times = [max(float(row["seconds"]), 1e-4) for row in rows]
    low_x, high_x = math.log10(min(nodes)), math.log10(max(nodes))
    low_y, high_y = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def x(value):
        return LEFT + (math.log10(value) - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - (math.log10(value) - low_y) / (high_y - low_y) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           f'<text x="{LEFT}" y="18" fill="#333">Solve time against graph size (filled: proven optimal; open: gap in per cent)</text>']
    for power in range(low_y, high_y + 1):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(10 ** power):.1f}" y2="{y(10 ** power):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(10 ** power) + 4:.1f}" text-anchor="end" fill="#333">{10 ** power:g} s</text>')
    for value in sorted(set(nodes)):
        out.append(f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#333">{value:,}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle" fill="#333">nodes</text>')
    for index, (objective, colour) in enumerate(COLOURS.items()):
        points = [(int(r["nodes"]), max(float(r["seconds"]), 1e-4), float(r["gap_percent"])) for r in rows if r["objective"] == objective]
        line = " ".join(f"{x(n):.1f},{y(t):.1f}" for n, t, _ in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for n, t, gap in points:
            fill = colour if gap == 0 else "#ffffff"
            out.append(f'<circle cx="{x(n):.1f}" cy="{y(t):.1f}" r="4" fill="{fill}" stroke="{colour}" stroke-width="2"/>')
            if gap > 0:
                out.append(f'<text x="{x(n):.1f}" y="{y(t) - 9:.1f}" text-anchor="middle" font-size="11" fill="{colour}">{gap:.2g} %</text>')
        out.append(f'<circle cx="{WIDTH - RIGHT + 20}" cy="{TOP + 20 + 22 * index}" r="5" fill="{colour}"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 32}" y="{TOP + 25 + 22 * index}" fill="#333">{objective}</text>')
    out.append("</svg>")
    with open(sys.argv[2], "w") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
