package ccm

import (
	"fmt"
	"os"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/audit"
)

// auditRights holds what controllers asked of the API server against the rights of their manifest: nothing may have
// been denied.
func auditRights(code int) int {
	log, err := os.Open(sharedCluster.AuditLog())
	if err != nil {
		return report(err)
	}
	defer func() { _ = log.Close() }()
	requests, err := audit.Read(log)
	if err != nil {
		return report(err)
	}
	var rights []audit.Right
	for i := range sharedCluster.objects {
		if !strings.HasSuffix(sharedCluster.objects[i].GetKind(), "Role") {
			continue
		}
		role := &rbacv1.ClusterRole{} // A Role has the same rules.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sharedCluster.objects[i].Object,
			role); err != nil {
			return report(err)
		}
		more, err := audit.RightsOf(role.Rules)
		if err != nil {
			return report(err)
		}
		rights = append(rights, more...)
	}
	found := audit.Compare(requests, "system:serviceaccount:"+addons.Namespace+":"+serviceAccount, rights)
	for _, denied := range found.Denied {
		if strings.HasPrefix(denied, "get secrets ") {
			continue // The role for it is not bound in the namespace yet: TestTLS.
		}
		code = report(fmt.Errorf("the cloud controller manager may not %s", denied))
	}
	fmt.Fprintf(os.Stderr,
		"The cloud controller manager made %d requests to the API server; of %d rights %d were not used: %v\n",
		found.Requests, len(rights), len(found.Unused), found.Unused)
	return code
}
