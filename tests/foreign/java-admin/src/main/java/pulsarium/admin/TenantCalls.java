package pulsarium.admin;

import java.util.Set;
import org.apache.pulsar.common.policies.data.ResourceGroup;
import org.apache.pulsar.common.policies.data.TenantInfo;

/** Tenants, and the groups their namespaces may share. */
final class TenantCalls {
    private TenantCalls() {
    }

    static void run(Context context) throws Exception {
        var tenants = context.tenants;
        var cluster = context.cluster();
        tenants.getTenants();
        var info = TenantInfo.builder().adminRoles(Set.of("r1")).allowedClusters(Set.of(cluster));
        tenants.createTenant("java-tenant", info.build());
        context.fails(409, () -> tenants.createTenant("java-tenant", info.build()));
        context.equal(tenants.getTenantInfo("java-tenant"), info.build(), "tenant");
        tenants.updateTenant("java-tenant", info.adminRoles(Set.of("r2")).build());
        context.equal(tenants.getTenantInfo("java-tenant"), info.build(), "tenant");
        context.fails(404, () -> tenants.getTenantInfo("java-missing"));
        context.fails(404, () -> tenants.updateTenant("java-missing", info.build()));
        var nowhere = TenantInfo.builder().allowedClusters(Set.of("no-cluster")).build();
        context.fails(412, () -> tenants.createTenant("java-other", nowhere));
        context.fails(412, () -> tenants.createTenant("java tenant", info.build()));
        context.namespaces.createNamespace("java-tenant/ns");
        context.fails(409, () -> tenants.deleteTenant("java-tenant"));
        context.namespaces.deleteNamespace("java-tenant/ns");
        tenants.deleteTenant("java-tenant");
        context.fails(404, () -> tenants.deleteTenant("java-tenant", false));
        groups(context);
    }

    private static void groups(Context context) throws Exception {
        var groups = context.resourceGroups;
        groups.getResourceGroups();
        var group = new ResourceGroup();
        group.setPublishRateInMsgs(10);
        groups.createResourceGroup("java-group", group);
        groups.getResourceGroup("java-group");
        group.setPublishRateInMsgs(20);
        groups.updateResourceGroup("java-group", group);
        groups.getResourceGroup("java-group");
        groups.deleteResourceGroup("java-group");
        context.fails(404, () -> groups.getResourceGroup("java-group"));
    }
}
