// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/clock"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// notDumped are the fields of a simulator and its parts that are not part of the simulated state, each with the reason.
var notDumped = map[string]string{
	"clock":        "runs on; its time is in the dump",
	"profile":      "configuration",
	"guest":        "configuration",
	"log":          "configuration",
	"observer":     "configuration",
	"addr":         "configuration",
	"lifetime":     "configuration",
	"assume":       "configuration",
	"public":       "configuration",
	"token":        "configuration",
	"probed":       "found by who runs guests, again and again",
	"routes":       "code",
	"operations":   "code",
	"collections":  "code",
	"named":        "code",
	"ca":           "code",
	"control":      "code",
	"site":         "of the program",
	"bells":        "code",
	"chain":        "of the program",
	"names":        "code",
	"unknown":      "code",
	"gate":         "what a test does to it",
	"faults":       "what a test does to it",
	"journal":      "what was seen of it",
	"server":       "of the program",
	"extraServers": "of the program",
	"ctx":          "of the program",
	"cancel":       "of the program",
	"running":      "of the program",
	"balancerMu":   "a lock",
	"lastPicked":   "of the balancer",
	"cells":        "cells run on",
	"boots":        "of the program: guests boot again",
	"queues":       "of the program: guests boot again",
	"mu":           "a lock",
	"pending":      "empty while the lock is free",
}

// isPart reports whether a type is a part of a simulator: its cloud, or a pointer to a struct that begins with the
// simulator or its cloud.
func isPart(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || t.Elem().NumField() == 0 {
		return false
	}
	return t == reflect.TypeFor[*cloud.Cloud]() || isWhole(t.Elem().Field(0).Type)
}

// isWhole reports whether a type is a type that contains parts.
func isWhole(t reflect.Type) bool {
	return t == reflect.TypeFor[*Simulator]() || t == reflect.TypeFor[*cloud.Cloud]()
}

// fieldsOf returns the fields of a struct and of its parts.
func fieldsOf(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		switch field := t.Field(i); {
		case i == 0 && isWhole(field.Type) && t != reflect.TypeFor[Simulator]():
		case isPart(field.Type):
			out = append(out, fieldsOf(field.Type.Elem())...)
		case field.Type.Kind() != reflect.Interface || field.Name != "Guests":
			out = append(out, strings.ToLower(field.Name))
		}
	}
	return out
}

func TestEveryFieldOfASimulatorIsDumpedOrDeliberatelyOmitted(t *testing.T) {
	known := []string{"store", "ids"}
	for name := range notDumped {
		known = append(known, strings.ToLower(name))
	}
	found := slices.Sorted(slices.Values(fieldsOf(reflect.TypeFor[Simulator]())))
	NewWithT(t).Expect(slices.Compact(found)).To(ConsistOf(known),
		"a new field of Simulator or a part of it: put it in the store, or state here why a dump does not need it")
	var fields []string
	for i := range reflect.TypeFor[ids.Source]().NumField() {
		fields = append(fields, reflect.TypeFor[ids.Source]().Field(i).Name)
	}
	NewWithT(t).Expect(fields).To(ConsistOf("Seed", "Count", "MACs", "Dice", "Rand"),
		"a new field of ids.Source: add it to dumpedIDs")
}

// fillValue sets every field in v to some value, so that a field missing from a dump is noticed.
func fillValue(v reflect.Value, seed *int, depth int) {
	*seed++
	if x, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		for _, text := range []string{"2026-03-01T00:00:00Z", "10.0.0.1", "10.0.0.0/24"} {
			if x.UnmarshalText([]byte(text)) == nil {
				return
			}
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				fillValue(v.Field(i), seed, depth)
			}
		}
	case reflect.Pointer:
		if depth < 12 {
			v.Set(reflect.New(v.Type().Elem()))
			fillValue(v.Elem(), seed, depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fillValue(v.Index(i), seed, depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key := reflect.New(v.Type().Key()).Elem()
		entry := reflect.New(v.Type().Elem()).Elem()
		fillValue(key, seed, depth+1)
		fillValue(entry, seed, depth+1)
		v.SetMapIndex(key, entry)
	case reflect.Interface:
		v.Set(reflect.ValueOf(any(map[string]any{"number": float64(*seed), "list": []any{"x"}})))
	case reflect.String:
		v.SetString(fmt.Sprint("s", *seed))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*seed) + 0.5)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*seed % 100))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*seed % 100))
	default:
		panic("a " + v.Type().String() + " in the store")
	}
}

func TestTheStoreHasNoUnexportedFieldLostInADump(t *testing.T) {
	g := NewWithT(t)
	for _, typ := range storedTypes(reflect.TypeFor[store.Store](), map[reflect.Type]bool{}) {
		for i := range typ.NumField() {
			field := typ.Field(i)
			if typ == reflect.TypeFor[store.Store]() && (field.Name == "Children" || field.Name == "Order") {
				continue // They are derived from other fields.
			}
			g.Expect(field.IsExported()).To(BeTrue(), "%s.%s would not be in a dump", typ, field.Name)
			g.Expect(field.Tag.Get("json")).NotTo(Or(Equal("-"), ContainSubstring("omitempty")),
				"%s.%s might be left out of a dump", typ, field.Name)
		}
	}
}

// storedTypes returns the structs of this package that a type can contain.
func storedTypes(t reflect.Type, seen map[reflect.Type]bool) []reflect.Type {
	if seen[t] {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return storedTypes(t.Elem(), seen)
	case reflect.Map:
		return append(storedTypes(t.Key(), seen), storedTypes(t.Elem(), seen)...)
	case reflect.Struct:
		if t.PkgPath() != reflect.TypeFor[store.Store]().PkgPath() {
			return nil
		}
		out := []reflect.Type{t}
		for i := range t.NumField() {
			out = append(out, storedTypes(t.Field(i).Type, seen)...)
		}
		return out
	default:
		return nil
	}
}

func TestEveryFieldOfTheStoreIsInTheDump(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)
	sim, err := New(Config{Seed: 1, Clock: clock.NewManualClock(start)})
	g.Expect(err).NotTo(HaveOccurred())
	seed := 0
	fillValue(reflect.ValueOf(sim.cloud.Store).Elem(), &seed, 0)
	g.Expect(seed).To(BeNumerically(">", 300), "few fields were filled")
	for n, a := range sim.cloud.Store.Alarms {
		a.At = start.Add(time.Hour) // not yet
		sim.cloud.Store.Alarms[n] = a
	}
	for id, vm := range sim.cloud.Store.VMs {
		vm.ID = id
		sim.cloud.Store.Children[vm.VAppID] = []*store.VM{vm}
		sim.cloud.Store.Order = []store.PlacedVM{{VM: vm, VApp: sim.cloud.Store.VApps[vm.VAppID]}}
	}
	var out bytes.Buffer
	g.Expect(sim.Dump(&out)).To(Succeed())

	other, err := New(Config{Seed: 2, Clock: clock.NewManualClock(start)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.Restore(&out)).To(Succeed())

	g.Expect(reflect.DeepEqual(other.cloud.Store, sim.cloud.Store)).To(BeTrue(), "the dump lacks something, or cannot read it back")
	g.Expect(other.cloud.IDs.Seed).To(Equal(sim.cloud.IDs.Seed))
	g.Expect(other.cloud.IDs.Rand.Uint64()).To(Equal(sim.cloud.IDs.Rand.Uint64()))
}

// shownAs maps a field of the store to its location in State.
var shownAs = map[string]string{
	"Model":      "Model",
	"VApps":      "VApps",
	"VMs":        "VMs",
	"Children":   "VMs",
	"Order":      "VMs",
	"Disks":      "Disks",
	"Uploads":    "Uploads",
	"Affinity":   "Affinity",
	"Tasks":      "Tasks",
	"Locks":      "Tasks",
	"Sessions":   "Sessions",
	"Metadata":   "Metadata",
	"Documents":  "Documents",
	"Access":     "Access",
	"Clients":    "APIClients",
	"Alarms":     "Tasks",
	"AlarmCount": "",
}

func TestStateShowsEveryFieldOfTheStore(t *testing.T) {
	for i := range reflect.TypeFor[store.Store]().NumField() {
		name := reflect.TypeFor[store.Store]().Field(i).Name
		g := NewWithT(t)
		g.Expect(shownAs).To(HaveKey(name), "a new field of the store: show it in State, and list it here")
		if shown := shownAs[name]; shown != "" {
			_, found := reflect.TypeFor[store.State]().FieldByName(shown)
			g.Expect(found).To(BeTrue(), shown)
		}
	}
}
