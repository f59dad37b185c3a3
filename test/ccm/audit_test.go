// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"errors"
	"fmt"
	"os"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/audit"
)

// auditRights returns the given exit code, or 1 if the shared cluster denied any request of a controller.
func auditRights(code int) int {
	if err := sharedCluster.auditRights(); err != nil {
		return report(err)
	}
	return code
}

// auditRights compares the requests of controllers to the API server with the permissions in their manifest. It returns
// an error if any request was denied.
func (h *cluster) auditRights() error {
	log, err := os.Open(h.AuditLog())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	requests, err := audit.Read(log)
	if err != nil {
		return err
	}
	var rights []audit.Right
	for i := range h.objects {
		if !strings.HasSuffix(h.objects[i].GetKind(), "Role") {
			continue
		}
		role := &rbacv1.ClusterRole{} // A Role has the same rules.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(h.objects[i].Object, role); err != nil {
			return err
		}
		more, err := audit.RightsOf(role.Rules)
		if err != nil {
			return err
		}
		rights = append(rights, more...)
	}
	found := audit.Compare(requests, "system:serviceaccount:"+addons.Namespace+":"+serviceAccount, rights)
	var wrong []error
	for _, denied := range found.Denied {
		if strings.HasPrefix(denied, "get secrets ") {
			continue // TestTLS binds this role later.
		}
		wrong = append(wrong, fmt.Errorf("the cloud controller manager was not allowed to %s", denied))
	}
	fmt.Fprintf(os.Stderr,
		"The cloud controller manager sent %d requests to the API server; %d rights, %d of them unused: %v\n",
		found.Requests, len(rights), len(found.Unused), found.Unused)
	return errors.Join(wrong...)
}
