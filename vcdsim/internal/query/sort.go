// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// sortKey returns the attribute by which a query sorts, and -1 if the order is descending.
func sortKey(query api.Values) (key string, sign int) {
	if key = query.Get("sortAsc"); key != "" {
		return key, 1
	}
	if key = query.Get("sortDesc"); key != "" {
		return key, -1
	}
	return "id", 1
}

// A keyedRow is a row with its sort key, which is computed only once.
type keyedRow struct {
	row     row
	text    string
	number  int
	numeric bool
	place   int // original index, which orders rows with the same key
}

// averageKey is the expected length of a sort key in bytes.
const averageKey = 32

// keyedRows returns rows with their keys. It copies the keys to one place in memory: sorting compares each of them
// several times, and the originals are scattered.
func keyedRows(rows []row, by column) []keyedRow {
	out := make([]keyedRow, len(rows))
	ends := make([]int, len(rows))
	var keys strings.Builder
	keys.Grow(len(rows) * averageKey)
	for i, of := range rows {
		text, _ := of.get(by)
		keys.WriteString(text)
		ends[i] = keys.Len()
	}
	start := 0
	for i, end := range ends {
		text := keys.String()[start:end]
		number, numeric := parseInteger(text)
		out[i] = keyedRow{
			row:     rows[i],
			text:    text,
			number:  number,
			numeric: numeric,
			place:   i,
		}
		start = end
	}
	return out
}

// compare compares two numbers by value, and all other keys as text.
func (k *keyedRow) compare(other *keyedRow) int {
	if k.numeric && other.numeric {
		return cmp.Compare(k.number, other.number)
	}
	return strings.Compare(k.text, other.text)
}

// parseInteger parses an integer of digits only. It returns early for most other values.
func parseInteger(s string) (int, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || s[len(s)-1] < '0' || s[len(s)-1] > '9' || len(s) > 18 {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
