// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
)

// A list contains the rows that match a query. It sorts them only as far as its pages require.
type list struct {
	ordered []row      // rows in the order of the result; nil if they are sorted by keys
	keyed   []keyedRow // rows with sort keys, in any order
	sign    int        // -1 for a descending order
}

// newList returns the list of a query.
func newList(r *api.Request, qt queryType) (*list, error) {
	rows, err := matchingRows(r, qt)
	if err != nil {
		return nil, err
	}
	key, sign := sortKey(r.Query)
	if qt.sortedByID && key == "id" && sign > 0 {
		return &list{ordered: rows}, nil
	}
	return &list{keyed: keyedRows(rows, columnOf(key)), sign: sign}, nil
}

func (l *list) len() int { return len(l.ordered) + len(l.keyed) }

// rows returns the rows from one index to another.
func (l *list) rows(from, to int) []row {
	if l.keyed == nil {
		return l.ordered[from:to]
	}
	sortRange(l.keyed, from, to, func(a, b *keyedRow) int {
		return cmp.Or(l.sign*a.compare(b), cmp.Compare(a.place, b.place))
	})
	out := make([]row, 0, to-from)
	for i := range l.keyed[from:to] {
		out = append(out, l.keyed[from+i].row)
	}
	return out
}

// A lastList is the list of the last query.
type lastList struct {
	list  *list
	key   string
	taken uint64 // how often the simulator's lock had been taken
}

// listOf returns the list of a query. It reuses the last one if it is of the same query, and no other request, task or
// guest has taken the simulator's lock since.
func (last *lastList) listOf(r *api.Request, qt queryType) (*list, error) {
	taken := r.Cloud.Mu.Taken()
	key := listKey(r)
	if last.list != nil && last.key == key && last.taken+1 == taken {
		last.taken = taken
		return last.list, nil
	}
	l, err := newList(r, qt)
	*last = lastList{}
	if err == nil && qt.timeless {
		*last = lastList{
			list:  l,
			key:   key,
			taken: taken,
		}
	}
	return l, err
}

// listKey returns the inputs of a list: the query without the parameters of pages, the caller, and the address and API
// version of the request.
func listKey(r *api.Request) string {
	query := maps.Clone(r.Query)
	for _, parameter := range []string{"page", "pageSize", "fields", "links", "format"} {
		delete(query, parameter)
	}
	return fmt.Sprintf("%q %q %q %q", r.Site.Base(), r.Version, r.Token(), query)
}
