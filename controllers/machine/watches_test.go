package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

func TestMachineThatIsDeletedIsWokenByItsCredentials(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Identify("tenant")
	w.Ready("a", "b")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
	a := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: controllertest.Namespace, Name: "a"}}

	// What waits for its turn to be deleted changes nothing that would wake a: neither the Machine nor the VCDCluster.
	w.Expect(w.Machine.SecretToMachines(w.Ctx, w.Secret("tenant-credentials"))).To(ConsistOf(a))
	w.Expect(w.Machine.IdentityToMachines(w.Ctx, controllertest.NewIdentity(w.Sim.URL()))).To(ConsistOf(a))
	w.Expect(w.Machine.SecretToMachines(w.Ctx, w.Secret("a-bootstrap"))).To(BeEmpty())
	w.Expect(w.Machine.IdentityToMachines(w.Ctx,
		&infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}})).To(BeEmpty())
}
