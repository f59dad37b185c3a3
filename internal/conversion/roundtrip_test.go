// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"math/rand"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/diff"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
	"sigs.k8s.io/randfill"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta1"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta2"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// rounds is the number of objects per kind, version and round trip.
const rounds = 300

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(AddToScheme(scheme))
	utilruntime.Must(infrav1.AddToScheme(scheme))
	return scheme
}

// journeys are the round trips: the kinds and versions, and the conversions.
var journeys = []struct {
	name      string
	construct Constructor
	hub       func() object
	spoke     func() object
}{
	{"VCDCluster v1beta1", VCDCluster(), newObject[infrav1.VCDCluster], newObject[v1beta1.VCDCluster]},
	{"VCDCluster v1beta2", VCDCluster(), newObject[infrav1.VCDCluster], newObject[v1beta2.VCDCluster]},
	{"VCDCluster v1beta3", VCDCluster(), newObject[infrav1.VCDCluster], newObject[v1beta3.VCDCluster]},
	{"VCDClusterTemplate v1beta2", VCDClusterTemplate(), newObject[infrav1.VCDClusterTemplate], newObject[v1beta2.VCDClusterTemplate]},
	{"VCDClusterTemplate v1beta3", VCDClusterTemplate(), newObject[infrav1.VCDClusterTemplate], newObject[v1beta3.VCDClusterTemplate]},
	{"VCDMachine v1beta1", VCDMachine(), newObject[infrav1.VCDMachine], newObject[v1beta1.VCDMachine]},
	{"VCDMachine v1beta2", VCDMachine(), newObject[infrav1.VCDMachine], newObject[v1beta2.VCDMachine]},
	{"VCDMachine v1beta3", VCDMachine(), newObject[infrav1.VCDMachine], newObject[v1beta3.VCDMachine]},
	{"VCDMachineTemplate v1beta1", VCDMachineTemplate(), newObject[infrav1.VCDMachineTemplate], newObject[v1beta1.VCDMachineTemplate]},
	{"VCDMachineTemplate v1beta2", VCDMachineTemplate(), newObject[infrav1.VCDMachineTemplate], newObject[v1beta2.VCDMachineTemplate]},
	{"VCDMachineTemplate v1beta3", VCDMachineTemplate(), newObject[infrav1.VCDMachineTemplate], newObject[v1beta3.VCDMachineTemplate]},
}

func newObject[T any, P interface {
	*T
	object
}]() object {
	return P(new(T))
}

func TestCAPVCDObjectsSurviveARoundTrip(t *testing.T) {
	for _, j := range journeys {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			tr := newTraveller(t, j.construct)
			for range rounds {
				before := j.spoke()
				tr.fill(before)

				after := tr.convert(tr.convert(before, j.hub()), j.spoke())
				takeNote(after)

				g.Expect(equality.Semantic.DeepEqual(before, after)).To(BeTrue(), differences(before, after))
			}
		})
	}
}

func TestStorageVersionObjectsSurviveARoundTrip(t *testing.T) {
	for _, j := range journeys {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			tr := newTraveller(t, j.construct)
			for range rounds {
				before := j.hub()
				tr.fill(before)

				spoke := tr.convert(before, j.spoke())
				after := tr.convert(spoke, j.hub())

				g.Expect(equality.Semantic.DeepEqual(before, after)).To(BeTrue(), differences(before, after))
				// The API server also converts metadata alone.
				empty := j.spoke()
				tr.name(empty)
				copyMeta(spoke, empty)
				tr.convert(empty, j.hub())
			}
		})
	}
}

// TestConvertedObjectsSurviveARoundTrip is like the previous test, with objects that contain CAPVCD data.
func TestConvertedObjectsSurviveARoundTrip(t *testing.T) {
	for _, j := range journeys {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			tr := newTraveller(t, j.construct)
			for range rounds / 10 {
				first := j.spoke()
				tr.fill(first)
				before := tr.convert(first, j.hub())

				after := tr.convert(tr.convert(before, j.spoke()), j.hub())

				g.Expect(equality.Semantic.DeepEqual(before, after)).To(BeTrue(), differences(before, after))
			}
		})
	}
}

// differences returns a function that describes the differences between two objects. Their comparison takes much longer
// than the round trip, so only a failed test calls it.
func differences(before, after object) func() string {
	return func() string { return diff.Diff(before, after) }
}

// A traveller fills and converts objects.
type traveller struct {
	*WithT

	converter conversion.Converter
	scheme    *runtime.Scheme
	filler    *randfill.Filler
	t         *testing.T
}

func newTraveller(t *testing.T, construct Constructor) *traveller {
	t.Helper()
	g := NewWithT(t)
	scheme := newScheme()
	converter, err := construct(scheme)
	g.Expect(err).NotTo(HaveOccurred())
	seed := rand.Int63()
	t.Logf("seed %d", seed)
	return &traveller{
		WithT:     g,
		converter: converter,
		scheme:    scheme,
		filler: fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, noEmptyCredentials),
			rand.NewSource(seed), serializer.NewCodecFactory(scheme)),
		t: t,
	}
}

// noEmptyCredentials removes empty credentials, which no request or conversion can produce.
func noEmptyCredentials(serializer.CodecFactory) []any {
	return []any{func(held *infrav1.CAPVCDCredentials, c randfill.Continue) {
		c.FillNoCustom(held)
		held.Username = "user"
	}}
}

// fill sets all fields of an object to random values.
func (tr *traveller) fill(o object) {
	tr.filler.Fill(o)
	tr.name(o)
}

// name sets the kind and version of an object, as in requests of the API server.
func (tr *traveller) name(o object) {
	kinds, _, err := tr.scheme.ObjectKinds(o)
	tr.Expect(err).NotTo(HaveOccurred())
	o.GetObjectKind().SetGroupVersionKind(kinds[0])
}

// convert converts from and returns the result in to.
func (tr *traveller) convert(from, to object) object {
	tr.name(to)
	tr.Expect(tr.converter.ConvertObject(tr.t.Context(), from, to)).To(Succeed())
	return to
}
